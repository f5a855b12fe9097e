"""What the compiled models share: numbers for observations, and River's objects where needed."""

import logging
from collections.abc import Callable, Collection
from copy import deepcopy
from functools import cache
from inspect import signature
from itertools import compress
from typing import Any, TypeVar

import numpy as np

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.splits import NOBODY, Game
from fluxplain.forest.state import Integers
from fluxplain.forest.summing import ADDED_TYPES
from fluxplain.forest.tree_arrays import TreeArrays

log = logging.getLogger("fluxplain.forest")

T = TypeVar("T")


class CompiledModel:
    """A River model as arrays.

    A value that arrays cannot hold makes River's own objects of the model, which goes on with them:
    ``river``. Then ``reason`` says why.
    """

    river: Any = None
    reason: str | None = None
    _made: TreeArrays | None = None
    _weight_types = ADDED_TYPES

    @property
    def _arrays(self) -> TreeArrays:
        if self._made is None:
            raise RuntimeError("the model has no arrays")
        return self._made

    def code(self, feature: Any, value: Any) -> float:
        """Return the number of a value; see :class:`AnswersRows`."""
        return -1.0 if self._made is None else self._made.names.known_code(feature, value)

    @property
    def categorical(self) -> Collection[Any]:
        """The features that were learned as categorical; see :class:`AnswersRows`."""
        return () if self._made is None else self._made.names.nominal

    def to_river(self) -> Any:
        """Return the model as River's own objects."""
        if self.river is not None:
            return deepcopy(self._as_river())
        return self._with_trees(deepcopy(self._without_trees()))

    def _as_river(self) -> Any:
        """Return River's objects; what is no tree is shared with them."""
        return self._with_trees(self._without_trees()) if self.river is None else self.river

    def _without_trees(self) -> Any:
        """Return River's model with all that is no tree."""
        raise NotImplementedError

    def _with_trees(self, river: Any) -> Any:
        """Give River's model the trees, and return it."""
        raise NotImplementedError

    def _river_tree(self, tree: int) -> Any:
        """Return a tree as River's object: a copy, or the model's own where it has given up."""
        raise NotImplementedError

    def answer_rows(
        self, features: tuple[Any, ...], own: Floats, rows: Floats
    ) -> tuple[list[Any], Floats] | None:
        """Return the classes and their probabilities; see :class:`AnswersRows`."""
        layout, known = self._known(features)
        if layout is None:
            return None
        if known is not None:
            own, rows = own[known], np.ascontiguousarray(rows[:, known])
        try:
            status, classes, numbers = self._answers(layout, own, rows)
        except UnsupportedError:
            return None
        if status != learn.DONE:
            return None
        return [self._arrays.labels[c] for c in classes], numbers

    def attribute_rows(
        self, features: tuple[Any, ...], own: Floats, rows: Floats, players: Integers
    ) -> tuple[list[Any], Floats, Floats] | None:
        """Return the classes, the mean answer, and Shapley values; see :class:`AnswersRows`."""
        layout, known = self._known(features)
        if layout is None or len(rows) == 0:
            return None
        n_players = int(players.max(initial=NOBODY)) + 1
        if known is not None:
            own, rows, players = own[known], rows[:, known], players[known]
        values = np.ascontiguousarray(rows.T)
        try:
            found = self._attributed(Game(own, values, layout.columns, players, n_players))
        except UnsupportedError:
            return None
        if found is None:
            return None
        classes, numbers = found
        return [self._arrays.labels[c] for c in classes], numbers[-1], numbers[:-1]

    def _known(self, features: tuple[Any, ...]) -> tuple[Layout | None, list[bool] | None]:
        """Return the places of the features that trees may test, None if the model must be asked.

        Also returns which they are, None for all.
        """
        if self._made is None:
            return None, None
        names = self._made.names
        layout = names.known_layout(features)
        if layout is not None or not self._made.leaves_out_unknown:
            return layout, None
        known = [name in names.features for name in features]
        return names.known_layout(tuple(compress(features, known))), known

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:  # noqa: ARG002
        """Return the classes, and what players get of their probabilities.

        The latter has the shape (players + 1, classes); its last row is the mean on the rows.
        Returns None if the model is not a sum of trees with constant leaves.
        """
        return None

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        """Return DONE or OVERFLOW, the classes, and their probabilities on the rows."""
        raise NotImplementedError

    def _taken(self, encode: Callable[[Any], T]) -> T | None:
        """Return what the arrays take of an observation; None if River's objects must take it."""
        if self._made is None:
            self._start_if_new()
        if self._made is None:
            return None
        try:
            return encode(self._made)
        except UnsupportedError as error:
            self._give_up(str(error))
            return None

    def _start_if_new(self) -> None:
        """Make the arrays of a model that was not made from River's."""
        if self._made is None and self.river is None:
            try:
                self._start()
            except UnsupportedError as error:
                self._give_up(str(error))

    def _start(self) -> None:
        """Make the arrays; raise ``UnsupportedError`` if they cannot hold the model."""
        raise NotImplementedError

    def _check_weight(self, weight: float) -> None:
        """Go on with River's objects if a weight is none that arrays add as River does.

        With others, River raises now and then, or keeps another precision.
        """
        is_usual = type(weight) in self._weight_types and weight > 0.0
        if not is_usual and self.river is None:
            self._start_if_new()
            self._give_up(f"a weight is {weight}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; with a changed parameter, River's objects go on."""
        if name in parameters_of(type(self)) and "_made" in self.__dict__:  # type: ignore[arg-type]
            if self.river is None and self._made is not None:
                self._give_up("its parameters were changed")
            if self.river is not None:
                setattr(self.river, name, value)
        super().__setattr__(name, value)

    def _give_up(self, reason: str) -> None:
        """Go on with River's objects."""
        log.warning("the model goes on as River's objects, which are slower: %s", reason)
        self.river, self.reason = self._as_river(), reason
        self._made = None

    def _look_at_sizes(self) -> None:
        """Estimate sizes that are due; go on with River's objects if one is too large."""
        trees, self._arrays.state.news.n[1] = self._arrays.state.trees, 0
        for tree in trees.to_measure.nonzero()[0].tolist():
            trees.to_measure[tree] = False
            copy = self._river_tree(tree)
            before = copy.n_inactive_leaves, copy._growth_allowed
            copy._estimate_model_size()
            trees.sizes[tree] = (
                copy._active_leaf_size_estimate,
                copy._inactive_leaf_size_estimate,
                copy._size_estimate_overhead_fraction,
            )
            trees.is_large[tree] |= (copy.n_inactive_leaves, copy._growth_allowed) != before
        large = trees.is_large.nonzero()[0].tolist()
        if large:
            self._give_up("a tree has reached max_size")
            for tree in large:
                self._river_tree(tree)._enforce_size_limit()


@cache
def parameters_of(kind: type) -> frozenset[str]:
    """Return the names of a model's parameters."""
    return frozenset(signature(kind).parameters)


def check(status: int) -> None:
    """Raise what River would have raised."""
    if status == learn.OVERFLOW:
        raise OverflowError(34, "Numerical result out of range")
    if status == learn.DIVISION:
        raise ZeroDivisionError("float division by zero")
    if status == learn.MISSING:
        raise AttributeError("'NoneType' object has no attribute 'items'")
