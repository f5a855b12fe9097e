"""What the compiled models share: numbers for observations, and River's objects where needed."""

import logging
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.tree_arrays import TreeArrays

log = logging.getLogger("fluxplain.forest")

T = TypeVar("T")

COMPENSATED = (3, 12)
"""The Python from which ``sum`` adds floats in a way that the arrays do not follow."""


class CompiledModel:
    """A River model as arrays.

    A value that arrays cannot hold makes River's own objects of the model, which goes on with them:
    ``river``. Then ``reason`` says why.
    """

    river: Any = None
    reason: str | None = None
    _made: TreeArrays | None = None

    @property
    def _arrays(self) -> TreeArrays:
        if self._made is None:
            raise RuntimeError("the model has no arrays")
        return self._made

    def code(self, feature: Any, value: Any) -> float:
        """Return the number of a value; see :class:`AnswersRows`."""
        return -1.0 if self._made is None else self._made.names.known_code(feature, value)

    def to_river(self) -> Any:
        """Return the model as River's own objects."""
        return deepcopy(self._as_river())

    def _as_river(self) -> Any:
        """Return River's objects; what is no tree is shared with them."""
        raise NotImplementedError

    def _river_tree(self, tree: int) -> Any:
        """Return a tree as River's object: a copy, or the model's own where it has given up."""
        raise NotImplementedError

    def answer_rows(
        self, features: tuple[Any, ...], own: Floats, rows: Floats
    ) -> tuple[list[Any], Floats] | None:
        """Return the classes and their probabilities; see :class:`AnswersRows`."""
        layout = None if self._made is None else self._made.names.known_layout(features)
        if layout is None:
            return None
        status, classes, numbers = self._answers(layout, own, rows)
        if status != learn.DONE:
            return None
        return [self._arrays.labels[c] for c in classes], numbers

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        """Return DONE or OVERFLOW, the classes, and their probabilities on the rows."""
        raise NotImplementedError

    def _taken(self, encode: Callable[[TreeArrays], T]) -> T | None:
        """Return what the arrays take of an observation; None if River's objects must take it."""
        if self.river is not None:
            return None
        try:
            return encode(self._arrays)
        except UnsupportedError as error:
            self._give_up(str(error))
            return None

    def mutate(self, new_attrs: dict[str, Any]) -> None:
        """Change parameters as River does; its objects go on with them."""
        if self._made is not None and self.river is None:
            self._give_up("its parameters were changed")
        super().mutate(new_attrs)  # type: ignore[misc]
        if self.river is not None:
            self.river.mutate(new_attrs)

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


def check_python() -> None:
    """Raise ``UnsupportedError`` if the arrays do not add as this Python does."""
    if sys.version_info >= COMPENSATED:
        raise UnsupportedError("from Python 3.12 on, sum() adds floats in another way")


def check(status: int) -> None:
    """Raise what River would have raised."""
    if status == learn.OVERFLOW:
        raise OverflowError(34, "Numerical result out of range")
