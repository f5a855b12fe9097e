"""River's Hoeffding tree for classification, as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import tree

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.ask import answer_alone
from fluxplain.forest.attribute import attribute_alone
from fluxplain.forest.compiled_model import check
from fluxplain.forest.compiled_tree import CompiledTree, Learned
from fluxplain.forest.forms import CLASSIFICATION
from fluxplain.forest.names import Layout
from fluxplain.forest.splits import Game

_LEARN, _PREDICT = Direct(learn.learn_tree), Direct(learn.predict_tree)


class HoeffdingTreeClassifier(CompiledTree, tree.HoeffdingTreeClassifier):
    """River's ``HoeffdingTreeClassifier`` as arrays; see :class:`CompiledModel`."""

    _form, _river_class = CLASSIFICATION, tree.HoeffdingTreeClassifier
    classes = Learned()

    def learn_one(self, x: Mapping[Any, Any], y: Any, *, w: float = 1.0) -> None:
        """Learn an observation as River's tree does."""
        self._check_weight(w)
        given = self._taken(lambda arrays: arrays.encode_labelled(x, y))
        if given is None:
            self.river.learn_one(x, y, w=w)
            return
        row, layout, c = given
        self._learn(row, layout, c, float(w), is_integer=type(w) is int)

    def _learn(self, row: Floats, layout: Layout, c: int, w: float, *, is_integer: bool) -> None:
        arrays = self._arrays
        status, node = _LEARN.call(
            *(arrays.pointer, 0, row, layout.columns, layout.features, layout.ranked),
            *(c, w, is_integer, arrays.words),
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
        (row, layout), arrays = encoded, self._arrays
        shares = np.zeros(arrays.size.classes)
        check(_PREDICT.call(arrays.pointer, 0, row, layout.columns, shares))
        return arrays.answer(0, shares)

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        classes = self._arrays.classes_of(0)
        shares, status = answer_alone(
            *(self._arrays.pointer, 0, rows, own, layout.columns),
            np.array(classes, np.int64),
        )
        return status, classes, shares

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        classes = self._arrays.classes_of(0)
        order = np.array(classes, np.int64)
        shares, is_exact = attribute_alone(self._arrays.pointer, 0, game, order)
        return (classes, shares) if is_exact else None
