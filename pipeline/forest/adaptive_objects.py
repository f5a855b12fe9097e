"""Reads River's objects of an adaptive tree into arrays, and makes them again."""

from copy import deepcopy
from typing import Any

from river.tree.nodes.leaf import HTLeaf

from fluxplain.forest.from_objects import TreeReader
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.regression.reader import RegressionReader
from fluxplain.forest.regression.writer import RegressionWriter, var_of
from fluxplain.forest.to_objects import TreeWriter
from fluxplain.forest.tree_arrays import TreeArrays


class AdaptiveReader(TreeReader):
    """A :class:`TreeReader` that reads errors and alternate trees, too.

    ``detectors`` are copies of the nodes' detectors.
    """

    def __init__(self, arrays: TreeArrays) -> None:
        super().__init__(arrays)
        self.detectors: dict[int, Any] = {}

    def _node(self, river: Any) -> int:
        node = super()._node(river)
        self.detectors[node] = deepcopy(river.drift_detector)
        self._arrays.state.adaptive.errors[node] = self._errors(river)
        behind = getattr(river, "_alternate_tree", None)
        if not isinstance(behind, HTLeaf | None):
            raise UnsupportedError("an alternate tree has branches")
        alternate = -1 if behind is None else self._node(behind)
        self._arrays.state.adaptive.alternate[node] = alternate
        return node

    def _errors(self, river: Any) -> tuple[float, float, float]:
        """Return what a node keeps of its errors; see :class:`Adaptive`."""
        return river._mean_error.n, river._mean_error.get(), 0.0


class AdaptiveWriter(TreeWriter):
    """A :class:`TreeWriter` that writes errors and alternate trees, too.

    River's objects share the ``detectors``; a node without one has a new one.
    """

    _attributes = {"drift_detector": None}  # noqa: RUF012  it stays as it is

    def __init__(self, arrays: TreeArrays, river: Any, detectors: dict[int, Any]) -> None:
        super().__init__(arrays, river)
        self._detectors = detectors

    def _node(self, node: int, below: list[Any]) -> Any:
        written, adaptive = super()._node(node, below), self._state.adaptive
        known = self._detectors.get(node)
        written.drift_detector = self._river.drift_detector.clone() if known is None else known
        self._put_errors(written, *adaptive.errors[node].tolist())
        if adaptive.alternate[node] >= 0:
            written._alternate_tree = self._node(int(adaptive.alternate[node]), [])
        return written

    def _put_errors(self, written: Any, seen: float, error: float, _spread: float) -> None:
        """Give a node what it keeps of its errors."""
        written._mean_error.n, written._mean_error._mean = seen, error


class RegressionAdaptiveReader(AdaptiveReader, RegressionReader):
    """An :class:`AdaptiveReader` of regression trees."""

    def _errors(self, river: Any) -> tuple[float, float, float]:
        errors = river._error_tracker
        return errors.mean.n, errors.mean.get(), errors._S


class RegressionAdaptiveWriter(AdaptiveWriter, RegressionWriter):
    """An :class:`AdaptiveWriter` of regression trees."""

    def _put_errors(self, written: Any, seen: float, error: float, spread: float) -> None:
        written._error_tracker = var_of([seen, error, spread])
