"""River's Hoeffding adaptive tree for regression, as arrays."""

import math
from collections.abc import Mapping
from typing import Any

from river import base, tree

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.adaptive_objects import RegressionAdaptiveReader, RegressionAdaptiveWriter
from fluxplain.forest.adaptive_tree import AdaptiveTree, Loops, Visited
from fluxplain.forest.forms import REGRESSION
from fluxplain.forest.learn import DONE
from fluxplain.forest.names import NUMBERS, Layout, UnsupportedError
from fluxplain.forest.observe import Given
from fluxplain.forest.regression.attribute_means import attribute_adaptive
from fluxplain.forest.regression.grow_branches import try_split
from fluxplain.forest.regression.regress_adaptive import (
    answer_adaptive,
    error_of,
    learn_path,
    predict_adaptive,
    visit,
)
from fluxplain.forest.regression.regression_arrays import RegressionArrays
from fluxplain.forest.splits import Game

_PREDICT = Direct(predict_adaptive)


class HoeffdingAdaptiveTreeRegressor(AdaptiveTree, tree.HoeffdingAdaptiveTreeRegressor):
    """River's ``HoeffdingAdaptiveTreeRegressor`` as arrays; see :class:`CompiledModel`."""

    _form, _river_class = REGRESSION, tree.HoeffdingAdaptiveTreeRegressor
    _loops = Loops(Direct(visit), Direct(learn_path), error_of, try_split)
    # where errors are NumPy's numbers, River does not raise if it divides by zero
    _weight_types = frozenset({float, int})
    _reader, _writer = RegressionAdaptiveReader, RegressionAdaptiveWriter

    def learn_one(self, x: Mapping[Any, Any], y: float, *, w: float = 1.0) -> None:
        """Learn an observation as River's tree does."""
        self._check_weight(w)
        given = self._taken(lambda arrays: self._encoded(arrays, x, y))
        if given is not None:
            (of, target), weight = given, float(w)
            visited = Visited(
                of,
                target,
                weight,
                False,  # River's weights of targets are floats
                *self._loops.visit.call(self._arrays.pointer, of, target, weight),
            )
            if not math.isnan(visited.error):
                self._learn_visited(visited)
                return
            self._give_up("a prediction is far from the target")
        self.river.learn_one(x, y, w=w)

    def _encoded(
        self, arrays: RegressionArrays, x: Mapping[Any, Any], y: Any
    ) -> tuple[Given, float]:
        given = arrays.encode_target(x, y)
        has_models = self.leaf_prediction != self._TARGET_MEAN
        if has_models and not NUMBERS.issuperset(map(type, x.values())):
            raise UnsupportedError("a linear model predicts from NumPy's numbers")
        return given

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the predicted number, as River's tree does."""
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_one(x)  # type: ignore[no-any-return]
        row, layout = encoded
        predicted: float = _PREDICT.call(self._arrays.pointer, row, layout.columns, layout.features)
        return predicted

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        given = answer_adaptive(self._arrays.pointer, rows, own, layout.columns, layout.features)
        return DONE, [0], given[:, None]

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        numbers, is_exact = attribute_adaptive(self._arrays.pointer, game)
        return ([0], numbers) if is_exact else None

    def _start(self) -> None:
        for name in ("drift_window_threshold", "switch_significance"):
            value = getattr(self, name)
            if type(value) not in {int, float} or math.isinf(value):
                raise UnsupportedError(f"{name} is {value!r}")
        if isinstance(self.drift_detector, base.BinaryDriftDetector):
            raise UnsupportedError("its detector is for errors that are 0 or 1")
        super()._start()
