"""River's Hoeffding tree for regression, as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import tree

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.compiled_model import check
from fluxplain.forest.compiled_tree import CompiledTree
from fluxplain.forest.forms import REGRESSION
from fluxplain.forest.learn import DONE
from fluxplain.forest.names import Layout
from fluxplain.forest.regression import regress
from fluxplain.forest.regression.answer import answer_trees
from fluxplain.forest.regression.attribute_means import attribute_trees
from fluxplain.forest.splits import Game

_LEARN, _PREDICT = Direct(regress.learn_tree), Direct(regress.predict_tree)


class HoeffdingTreeRegressor(CompiledTree, tree.HoeffdingTreeRegressor):
    """River's ``HoeffdingTreeRegressor`` as arrays; see :class:`CompiledModel`."""

    _form, _river_class = REGRESSION, tree.HoeffdingTreeRegressor

    def learn_one(self, x: Mapping[Any, Any], y: float, *, w: float = 1.0) -> None:
        """Learn an observation as River's tree does."""
        self._check_weight(w)
        given = self._taken(lambda arrays: arrays.encode_target(x, y))
        if given is None:
            self.river.learn_one(x, y, w=w)
            return
        (of, target), arrays = given, self._arrays
        check(_LEARN.call(arrays.pointer, 0, of, target, float(w), arrays.words))
        if arrays.state.news.n[1]:
            self._look_at_sizes()

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the predicted number, as River's tree does."""
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_one(x)  # type: ignore[no-any-return]
        row, layout = encoded
        predicted: float = _PREDICT.call(
            self._arrays.pointer, 0, row, layout.columns, layout.features
        )
        return predicted

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        trees, pointer = np.zeros(1, np.int64), self._arrays.pointer
        given = answer_trees(pointer, trees, rows, own, layout.columns, layout.features)
        return DONE, [0], given

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        tree, weight = np.zeros(1, np.int64), np.ones(1)
        numbers, is_exact = attribute_trees(self._arrays.pointer, tree, weight, game)
        return ([0], numbers) if is_exact else None
