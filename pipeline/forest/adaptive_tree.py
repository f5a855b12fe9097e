"""What River's Hoeffding adaptive trees as arrays share.

The detectors of the nodes stay Python's objects.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

from fluxplain.evaluate.compiled import Direct
from fluxplain.forest.adapt import free_dropped, settle_split
from fluxplain.forest.adaptive_objects import AdaptiveReader, AdaptiveWriter
from fluxplain.forest.compiled_model import check
from fluxplain.forest.compiled_tree import CompiledTree, Learned
from fluxplain.forest.drawing import DrawingModel
from fluxplain.forest.grow import KEPT, RAISES
from fluxplain.forest.learn import OVERFLOW
from fluxplain.forest.mersenne import Words, state_of
from fluxplain.forest.node_errors import forget_errors
from fluxplain.forest.observe import Given
from fluxplain.forest.places import NODES

_COUNTS = "_n_alternate_trees", "_n_pruned_alternate_trees", "_n_switch_alternate_trees"
"""River's names of what the arrays count."""


class Loops(NamedTuple):
    """The compiled loops of a kind of adaptive trees."""

    visit: Direct[Any]
    learn_path: Direct[Any]
    error_of: Callable[..., Any]
    try_split: Callable[..., int]


class Visited(NamedTuple):
    """An observation on its way through a tree: ``label`` is its class or its target.

    Its weight may be one of Python's integers. There are ``n`` branches on its path; ``leaf`` is
    the one that predicts, with ``error``.
    """

    of: Given
    label: Any
    w: float
    is_integer: bool
    n: int
    leaf: int
    error: Any


class AdaptiveTree(DrawingModel, CompiledTree):
    """An adaptive tree as arrays: a base class beside River's ``_river_class``."""

    _n_alternate_trees = Learned()
    _n_pruned_alternate_trees = Learned()
    _n_switch_alternate_trees = Learned()

    _loops: ClassVar[Loops]
    _reader: ClassVar[type[AdaptiveReader]]
    _writer: ClassVar[type[AdaptiveWriter]]
    _ours = CompiledTree._ours | {"_own_rng", "_detectors", "_is_measured"}
    _detectors: dict[int, Any]  # node → River's
    _is_measured: bool

    # River's parameters
    bootstrap_sampling: bool
    drift_window_threshold: float
    switch_significance: float
    drift_detector: Any

    def _learn_visited(self, visited: Visited) -> None:
        """Let the tree learn an observation whose path is known."""
        try:
            looks = self._learn_path(visited)
        except Exception:
            self._arrays.forget_looks()
            raise
        finally:
            self._free()
        if looks:
            self._look_at_sizes()
        if self._is_measured and self.river is None:
            self._check_size()

    def _learn_path(self, visited: Visited) -> bool:
        """Let the branches on the path learn, and its leaf; return whether a size is looked at."""
        of, label, w, is_integer, n, leaf, error = visited
        arrays, loops, first, looks = self._arrays, self._loops, 0, False
        path = arrays.path(n)
        while first <= n:
            if first:
                arrays.take_room()
            last, drifts = self._watch(path, first, error)
            status, learner, own, is_better, is_due = loops.learn_path.call(
                *(arrays.pointer, first, last, n, drifts, error, of, label, w, is_integer),
                *(arrays.words, bool(self.bootstrap_sampling)),
                *(float(self.drift_window_threshold), float(self.switch_significance)),
            )
            if learner >= 0 and own >= 0:
                self._show(learner, own, is_better)
            looks = arrays.settle(None)
            check(status)
            if is_due and self._split(last, learner) and last + 1 < n:
                error = loops.error_of(arrays.pointer, leaf, of, label)
            first = last + 1
        return looks

    def _watch(self, path: list[list[int]], first: int, error: Any) -> tuple[int, bool]:
        """Show the error to detectors of branches, up to one that drifts or has an alternate tree.

        Returns how far that is, and whether it drifts.
        """
        check(OVERFLOW if error < 0 else 0)
        for level in range(first, len(path) - 1):
            node, alternate = path[level]
            detector = self._detector(node)
            detector.update(error)
            if detector.drift_detected:
                return level, True
            if alternate >= 0:
                return level, False
        return len(path) - 1, False

    def _show(self, leaf: int, error: Any, is_better: bool) -> None:
        """Show a leaf's error to its detector."""
        detector = self._detector(leaf)
        detector.update(error)
        if detector.drift_detected and is_better:
            forget_errors(self._arrays.pointer, leaf)

    def _detector(self, node: int) -> Any:
        found = self._detectors.get(node)
        if found is None:
            found = self._detectors[node] = self.drift_detector.clone()
        return found

    def _split(self, level: int, leaf: int) -> bool:
        """Try to split a leaf; return whether the tree has changed."""
        pointer = self._arrays.pointer
        decision = self._loops.try_split(pointer, 0, leaf)
        if decision == RAISES:
            raise ZeroDivisionError("float division by zero")
        if decision == KEPT:
            return False
        if settle_split(pointer, level, leaf):
            del self._detectors[leaf]
        return True

    def _free(self) -> None:
        """Free the nodes that are no longer in the tree."""
        arrays = self._arrays
        if arrays.state.adaptive.n_dropped[0]:
            free_dropped(arrays.pointer)
            free = arrays.state.free
            for node in free.nodes[: free.n[NODES]].tolist():
                self._detectors.pop(node, None)

    def _look_at_sizes(self) -> None:
        super()._look_at_sizes()
        self._is_measured = True

    def _check_size(self) -> None:
        """Go on with River's objects before River would switch leaves off: see ``max_size``."""
        state, nodes = self._arrays.state, self._arrays.most_nodes()
        active, inactive, factor = state.trees.sizes[0].tolist()
        if nodes * max(active, inactive) * factor > state.settings.max_bytes:
            self._give_up("a tree is near max_size")

    def _give_up(self, reason: str) -> None:
        super()._give_up(reason)
        self._detectors = {}

    def _start(self) -> None:
        self._detectors, self._is_measured = {}, False
        super()._start()

    def _words(self) -> Words:
        return state_of(self._own_rng)

    def _read(self, model: Any) -> None:
        reader = self._reader(self._arrays)
        reader.read(0, model)
        self._arrays.state.adaptive.counts[:] = [getattr(model, name) for name in _COUNTS]
        self._detectors = reader.detectors
        self._is_measured = bool(self._arrays.state.trees.sizes[0, :2].any())

    def to_river(self) -> Any:
        """Return the model as River's own objects."""
        return deepcopy(self._as_river())  # it shares the detectors with the arrays

    def _without_trees(self) -> Any:
        river = super()._without_trees()
        river._rng = self._rng
        return river

    def _with_trees(self, river: Any) -> Any:
        if self._made is not None:
            self._writer(self._arrays, river, self._detectors).write(0)
            counts = self._arrays.state.adaptive.counts.tolist()
            for name, count in zip(_COUNTS, counts, strict=True):
                setattr(river, name, count)
        return river
