"""River's bagging of Hoeffding trees, with all trees in the same arrays."""

from collections.abc import Container, Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple, Self

import numpy as np
from river import ensemble, tree

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.compiled_model import check
from fluxplain.forest.from_objects import TreeReader, learn_names
from fluxplain.forest.learn import NOT_ASKED
from fluxplain.forest.mersenne import state_of
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.repeat import learn_and_predict
from fluxplain.forest.to_objects import TreeWriter
from fluxplain.forest.tree_arrays import TreeArrays
from fluxplain.forest.voting import Voting

_LEARN = Direct(learn_and_predict)

_OURS = frozenset({"_made", "_mains", "_now", "river", "reason", "data"})


class Now(NamedTuple):
    """The observation that an ensemble learns, and its numbers.

    Its weight may be one of Python's integers.
    """

    x: Mapping[Any, Any]
    y: Any
    w: float
    is_integer: bool
    row: Floats
    layout: Layout
    c: int


class Member:
    """A tree of the arrays, as River's loops see it while their ensemble learns.

    It counts how often it is given the observation, and learns all at once: before it predicts, and
    before the loop comes to the next member.
    """

    def __init__(self, of: "Bagging", tree: int) -> None:
        self._of = of
        self.tree = tree
        self.waiting = 0

    def learn_one(self, _x: Any, _y: Any, **_: Any) -> None:
        """Learn the observation that the ensemble learns."""
        self.waiting += 1

    def predict_one(self, _x: Any) -> Any:
        """Return the class of that observation."""
        return self._of.catch_up(self, asks=True)


class Bagging(Voting):
    """Bagging as arrays: River's own loops draw, look for drifts, and replace members.

    ``data`` are members for these loops; see :meth:`to_river` for trees.
    """

    model: tree.HoeffdingTreeClassifier
    data: list[Any]
    _rng: Random
    _now: Now | None = None

    @classmethod
    def from_river(cls, model: Any) -> Self:
        """Return a River model as arrays; raise ``UnsupportedError`` if they cannot hold it."""
        found = cls.__new__(cls)
        _copy_attributes(model, found, without={"data"})
        found.data = model.data
        found._start()
        return found

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": tree.HoeffdingTreeClassifier()}

    def learn_one(self, x: Mapping[Any, Any], y: Any, *, w: float = 1.0) -> None:
        """Learn an observation as River's ensemble does."""
        self._check_weight(w)
        given = self._taken(lambda arrays: arrays.encode_labelled(x, y))
        self._now = None if given is None else Now(x, y, float(w), type(w) is int, *given)
        try:
            super().learn_one(x, y, w=w)  # type: ignore[misc]
        finally:
            self._now = None
        self._renew()

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class, as River's ensemble does."""
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return super().predict_proba_one(x)  # type: ignore[misc, no-any-return]
        return self._voted(*encoded)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self.data)):
            member = self.data[i]
            yield member
            if isinstance(member, Member):
                self.catch_up(member)

    def catch_up(self, member: Member, *, asks: bool = False) -> Any:
        """Let a member learn what waits; return the class that it predicts if ``asks``."""
        times, member.waiting, best = member.waiting, 0, NOT_ASKED
        while times or (asks and best == NOT_ASKED):
            if self._now is None:
                raise RuntimeError("a member learns and predicts with its ensemble only")
            if self.river is not None:
                return _with_object(self.data[member.tree], self._now, times, asks=asks)
            times, best = self._learn(member.tree, self._now, times, asks=asks)
        return self._arrays.labels[best] if best >= 0 else None

    def _learn(self, tree: int, now: Now, times: int, *, asks: bool) -> tuple[int, int]:
        """Let a tree learn until a split is due.

        Returns how many times are left, and the class that it predicts if there are none.
        """
        _, _, w, is_integer, row, layout, c = now
        arrays = self._arrays
        left, status, node, best = _LEARN.call(
            *(arrays.pointer, tree, times, row, layout.columns, layout.features, layout.ranked),
            *(c, w, is_integer, arrays.words, asks),
        )
        due = None
        if node >= 0:
            due = np.full(len(self.data), -1)
            due[tree] = node
        looks = arrays.settle(due)
        check(status)
        if left:
            arrays.encode_labelled(now.x, now.y)  # makes room again
        if looks:
            self._look_at_sizes()
        return left, best

    def _renew(self) -> None:
        """Put new trees into the arrays where River's loop has put clones of its model."""
        for i, each in enumerate(self.data if self.river is None else ()):
            if not isinstance(each, Member):
                self._arrays.put_tree(i, self._parameters())
                self.data[i] = Member(self, i)

    def _weights(self) -> Floats:
        return np.ones(len(self.data))

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self.model, name) for name in self.model._get_params()}

    def _start(self) -> None:
        """Read River's trees into arrays."""
        given = self.model._get_params()
        if not all(
            type(each) is type(self.model) and each._get_params() == given for each in self.data
        ):
            raise UnsupportedError("its members have other parameters than its model")
        parameters, n = self._parameters(), len(self.data)
        arrays = TreeArrays(parameters, n_trees=n, words=state_of(self._rng))
        learn_names(arrays, self.data)
        reader = TreeReader(arrays)
        for i, each in enumerate(self.data):
            arrays.put_tree(i, parameters)
            reader.read(i, each)
        self._made, self._mains = arrays, np.arange(n)
        self.data = [Member(self, i) for i in range(n)]

    def _give_up(self, reason: str) -> None:
        super()._give_up(reason)
        self.data = self.river.data

    def _as_river(self) -> Any:
        # where the arrays are given up, River's loops go on here, with members of River
        return self._with_trees(self._without_trees())

    def _without_trees(self) -> Any:
        kind: Any = type(self).__bases__[-1]
        river = kind.__new__(kind)
        _copy_attributes(self, river, without=_OURS)
        return river

    def _with_trees(self, river: Any) -> Any:
        river.data = [
            self._river_tree(each.tree) if isinstance(each, Member) else each for each in self.data
        ]
        return river

    def _river_tree(self, tree: int) -> Any:
        if self.river is not None:
            return self.data[tree]
        river = self.model.clone()
        TreeWriter(self._arrays, river).write(tree)
        return river


def _copy_attributes(model: Any, found: Any, without: Container[str]) -> None:
    attributes = {name: each for name, each in vars(model).items() if name not in without}
    # an attribute may be a method of the model: it becomes the other one's
    vars(found).update(deepcopy(attributes, {id(model): found}))


def _with_object(river: Any, now: Now, times: int, *, asks: bool) -> Any:
    """Let River's tree do what is left where the ensemble has given up its arrays meanwhile."""
    for _ in range(times):
        river.learn_one(now.x, now.y, w=now.w)
    return river.predict_one(now.x) if asks else None


class BaggingClassifier(Bagging, ensemble.BaggingClassifier):
    """River's ``BaggingClassifier`` of Hoeffding trees; see :class:`Bagging`."""


class ADWINBaggingClassifier(Bagging, ensemble.ADWINBaggingClassifier):
    """River's ``ADWINBaggingClassifier`` of Hoeffding trees; see :class:`Bagging`."""


class LeveragingBaggingClassifier(Bagging, ensemble.LeveragingBaggingClassifier):
    """River's ``LeveragingBaggingClassifier`` of Hoeffding trees; see :class:`Bagging`."""
