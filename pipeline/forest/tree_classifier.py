"""River's Hoeffding tree for classification, as arrays."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from random import Random
from typing import Any, Self, TypeVar

import numpy as np
from river import tree

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.ask import answer_tree, changed_columns
from fluxplain.forest.compiled_model import CompiledModel, check, check_python
from fluxplain.forest.from_objects import TreeReader, learn_names
from fluxplain.forest.mersenne import state_of
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.to_objects import TreeWriter
from fluxplain.forest.tree_arrays import TreeArrays

T = TypeVar("T")

_OURS = frozenset({"_made", "river", "reason"})


class _Learned:
    """An attribute that says what River's tree has learned; the arrays know it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        return self if model is None else getattr(model._as_river(), self._name)

    def __set__(self, model: Any, value: Any) -> None:
        """Ignore what River sets in a new tree."""


class HoeffdingTreeClassifier(CompiledModel, tree.HoeffdingTreeClassifier):
    """River's ``HoeffdingTreeClassifier`` as arrays; see :class:`CompiledModel`."""

    _root = _Learned()
    classes = _Learned()
    _n_active_leaves = _Learned()
    _n_inactive_leaves = _Learned()
    _train_weight_seen_by_model = _Learned()
    _growth_allowed = _Learned()
    _active_leaf_size_estimate = _Learned()
    _inactive_leaf_size_estimate = _Learned()
    _size_estimate_overhead_fraction = _Learned()

    @classmethod
    def from_river(cls, model: tree.HoeffdingTreeClassifier) -> Self:
        """Return a River model as arrays; raise ``UnsupportedError`` if they cannot hold it."""
        found = cls.__new__(cls)
        is_learned = {name for name, each in vars(cls).items() if isinstance(each, _Learned)}
        of = {name: each for name, each in vars(model).items() if name not in is_learned}
        found.__dict__.update(deepcopy(of))
        found._start()
        learn_names(found._arrays, [model])
        TreeReader(found._arrays).read(0, model)
        return found

    def learn_one(self, x: Mapping[Any, Any], y: Any, *, w: float = 1.0) -> None:
        """Learn an observation as River's tree does."""
        if w < 0.0 and self.river is None:  # River raises now and then
            self._start_if_new()
            self._give_up("a weight is negative")
        given = self._taken(lambda arrays: arrays.encode_labelled(x, y))
        if given is None:
            self.river.learn_one(x, y, w=w)
            return
        (row, layout, c), arrays = given, self._arrays
        status, node = learn.learn_tree(
            *(arrays.pointer, 0, row, layout.columns, layout.features, layout.ranked),
            *(c, float(w), arrays.words),
        )
        looks = arrays.settle(np.array([node]) if node >= 0 else None)
        check(status)
        if looks:
            self._look_at_sizes()

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of each class, as River's tree does."""
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_proba_one(x)  # type: ignore[no-any-return]
        row, layout = encoded
        shares = np.zeros(self._arrays.size.classes)
        check(learn.predict_tree(self._arrays.pointer, 0, row, layout.columns, shares))
        return self._arrays.answer(0, shares)

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        shares = np.zeros((len(rows), self._arrays.size.classes))
        changed = np.empty((len(rows), 2), np.int64)
        changed_columns(rows, own, changed)
        status = answer_tree(self._arrays.pointer, 0, rows, own, layout.columns, changed, shares)
        classes = self._arrays.classes_of(0)
        return status, classes, shares[:, classes]

    def _taken(self, encode: Callable[[TreeArrays], T]) -> T | None:
        self._start_if_new()
        return super()._taken(encode)

    def _start_if_new(self) -> None:
        if self._made is None and self.river is None:
            try:
                self._start()
            except UnsupportedError as error:
                self._give_up(str(error))

    def _start(self) -> None:
        check_python()
        parameters = {name: getattr(self, name) for name in self._get_params()}
        self._made = TreeArrays(parameters, n_trees=1, words=state_of(Random(0)))
        self._arrays.put_tree(0, parameters)

    def _river_tree(self, tree: int) -> Any:  # noqa: ARG002  it has one
        return self._as_river()

    def _as_river(self) -> tree.HoeffdingTreeClassifier:
        if self.river is not None:
            return self.river
        river = tree.HoeffdingTreeClassifier()
        river.__dict__.update({n: each for n, each in vars(self).items() if n not in _OURS})
        if self._made is not None:
            TreeWriter(self._arrays, river).write(0)
        return river
