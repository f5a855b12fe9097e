"""River's adaptive random forest for regression, as arrays."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import forest

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.compiled_forest import CompiledForest
from fluxplain.forest.forms import REGRESSION
from fluxplain.forest.learn import DONE
from fluxplain.forest.names import Layout
from fluxplain.forest.regression import regress
from fluxplain.forest.regression.answer import answer_trees
from fluxplain.forest.regression.attribute_means import attribute_trees
from fluxplain.forest.splits import Game
from fluxplain.forest.state import Integers

_LEARN, _PREDICT = Direct(regress.learn_forest), Direct(regress.predict_trees)


class ARFRegressor(CompiledForest, forest.ARFRegressor):
    """River's ``ARFRegressor`` as arrays: the same parameters and numbers.

    ``data`` are copies of the trees; see :class:`CompiledModel`.
    """

    _form, _river_class = REGRESSION, forest.ARFRegressor
    # River's trees do not get min_samples_split
    _tree_names = (
        "max_features",
        "grace_period",
        "max_depth",
        "delta",
        "tau",
        "leaf_prediction",
        "leaf_model",
        "model_selector_decay",
        "nominal_attributes",
        "splitter",
        "binary_split",
        "max_size",
        "memory_estimate_period",
        "stop_mem_management",
        "remove_poor_attrs",
        "merit_preprune",
    )

    def learn_one(self, x: Mapping[Any, Any], y: float, **_: Any) -> None:
        """Learn an observation as River's forest does."""
        self._begin(x)
        given = self._taken(lambda arrays: arrays.encode_target(x, y))
        if given is None:
            self.river.learn_one(x, y)
            return
        (of, target), arrays = given, self._arrays
        guesses = self._guesses(of.x, of.columns, of.features)
        if not np.abs(guesses - target).max() < regress.FAR:
            self._give_up("a prediction is far from the target")
            self.river.learn_one(x, y)
            return
        drawn = np.zeros(self.n_models, np.int64)
        done, status = _LEARN.call(
            arrays.pointer,
            self._mains,
            self._backgrounds,
            math.exp(-self.lambda_value),
            of,
            target,
            arrays.words,
            drawn,
        )
        made = guesses[: done + 1].tolist()
        self._finish(done, status, drawn, y, made, made)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the predicted number, as River's forest does."""
        if self._begin(x):
            return 0.0
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_one(x)  # type: ignore[no-any-return]
        row, layout = encoded
        given = self._guesses(row, layout.columns, layout.features)
        return float(self._combined(given[None])[0])

    def _guesses(self, row: Floats, columns: Integers, features: Integers) -> Floats:
        """Return the trees' predictions."""
        pointer = self._arrays.pointer
        given: Floats = _PREDICT.call(pointer, self._mains, row, columns, features)
        return given

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        given = answer_trees(
            self._arrays.pointer, self._mains, rows, own, layout.columns, layout.features
        )
        return DONE, [0], self._combined(given)[:, None]

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        if self.aggregation_method == self._MEDIAN:
            return None
        votes = self._vote_weights()
        weights = (np.ones(self.n_models) if votes is None else votes) / self.n_models
        numbers, is_exact = attribute_trees(self._arrays.pointer, self._mains, weights, game)
        return ([0], numbers) if is_exact else None

    def _combined(self, given: Floats) -> Floats:
        """Return the forest's predictions from those of its trees, shape (rows, trees)."""
        if self.aggregation_method == self._MEDIAN:
            return np.median(given, axis=1)
        weights = self._vote_weights()
        given = given if weights is None else given * weights
        combined: Floats = given.mean(axis=1)
        return combined

    def _vote_weights(self) -> Floats | None:
        """Return the weight of each tree's prediction before the mean; None if all are equal."""
        if self.disable_weighted_vote:
            return None
        errors, total = [metric.get() for metric in self._metrics], 0.0
        for error in errors:  # as River adds them, which is not what sum does
            total += error
        if total == 0:
            return None
        weights: Floats = total - np.array(errors)
        weights /= weights.sum()
        return weights
