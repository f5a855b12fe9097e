"""What the compiled models share: numbers for observations, and River's objects where needed."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.grove import Grove
from fluxplain.forest.names import Layout, UnsupportedError

log = logging.getLogger("fluxplain.forest")

COMPENSATED = (3, 12)
"""The Python from which ``sum`` adds floats in a way that the arrays do not follow."""


class CompiledModel:
    """A River model as arrays.

    A value that arrays cannot hold makes River's own objects of the model, which goes on with them:
    ``river``. Then ``reason`` says why.
    """

    river: Any = None
    reason: str | None = None
    _made: Grove | None = None

    @property
    def _grove(self) -> Grove:
        if self._made is None:
            raise RuntimeError("the model has no arrays")
        return self._made

    def code(self, feature: Any, value: Any) -> float:
        """Return the number of a value; see :class:`AnswersRows`."""
        return -1.0 if self._made is None else self._made.names.known_code(feature, value)

    def _as_river(self) -> Any:
        """Return River's objects; what is no tree is shared with them."""
        raise NotImplementedError

    def _river_tree(self, tree: int) -> Any:
        """Return the tree of a place in the arrays as River's object, which the model may own."""
        raise NotImplementedError

    def _encoded(self, x: Mapping[Any, Any]) -> tuple[Floats, Layout] | None:
        """Return an observation as numbers; None if River's objects must take it."""
        if self.river is not None:
            return None
        try:
            return self._grove.encode(x)
        except UnsupportedError as error:
            self._give_up(str(error))
            return None

    def _learnable(self, x: Mapping[Any, Any], y: Any) -> tuple[Floats, Layout, int] | None:
        """Return an observation as numbers, and its class; None if River's objects must learn."""
        if self.river is not None:
            return None
        try:
            row, layout = self._grove.encode(x, learns=True)
            return row, layout, self._grove.label(y)
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

    def _layout(self, features: tuple[Any, ...]) -> Layout | None:
        """Return the places of features; None if the arrays do not know them yet."""
        return None if self._made is None else self._made.names.known_layout(features)

    def _give_up(self, reason: str) -> None:
        """Go on with River's objects."""
        log.warning("the model goes on as River's objects, many times slower: %s", reason)
        self.river, self.reason = self._as_river(), reason
        self._made = None

    def _look_at_sizes(self) -> None:
        """Estimate sizes that are due; go on with River's objects if one is too large."""
        trees, self._grove.state.news.n[1] = self._grove.state.trees, 0
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
