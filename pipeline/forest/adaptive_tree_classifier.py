"""River's Hoeffding adaptive tree for classification, as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import tree

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.adaptive_objects import AdaptiveReader, AdaptiveWriter
from fluxplain.forest.adaptive_tree import AdaptiveTree, Loops, Visited
from fluxplain.forest.attribute import attribute_adaptive
from fluxplain.forest.combine import answer_adaptive, predict_adaptive
from fluxplain.forest.compiled_model import check
from fluxplain.forest.grow import try_split
from fluxplain.forest.learn_adaptive import error_of, learn_path, visit
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.observe import Given
from fluxplain.forest.sets import copy_of
from fluxplain.forest.splits import Game
from fluxplain.forest.state import Integers
from fluxplain.forest.tree_classifier import HoeffdingTreeClassifier

_PREDICT = Direct(predict_adaptive)


class HoeffdingAdaptiveTreeClassifier(
    AdaptiveTree, HoeffdingTreeClassifier, tree.HoeffdingAdaptiveTreeClassifier
):
    """River's ``HoeffdingAdaptiveTreeClassifier`` as arrays; see :class:`CompiledModel`."""

    _river_class = tree.HoeffdingAdaptiveTreeClassifier
    _loops = Loops(Direct(visit), Direct(learn_path), error_of, try_split)
    _reader, _writer = AdaptiveReader, AdaptiveWriter
    _ours = AdaptiveTree._ours | {"_classes", "_order"}
    _classes: set[Any]  # River's
    _order: Integers | None = None  # of the classes, as in River's set

    def __getstate__(self) -> dict[str, Any]:
        # a set may have another order once it is loaded
        return {name: each for name, each in vars(self).items() if name != "_order"}

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability of each class, as River's tree does."""
        encoded = self._taken(lambda arrays: arrays.encode(x))
        if encoded is None:
            return self.river.predict_proba_one(x)  # type: ignore[no-any-return]
        (row, layout), order = encoded, self._class_order()
        given = np.empty(len(order))
        check(_PREDICT.call(self._arrays.pointer, row, layout.columns, order, given))
        return dict(zip(self._classes, given.tolist(), strict=True))

    def _answers(self, layout: Layout, own: Floats, rows: Floats) -> tuple[int, list[int], Floats]:
        order = self._class_order()
        shares, status = answer_adaptive(self._arrays.pointer, rows, own, layout.columns, order)
        return status, order.tolist(), shares

    def _attributed(self, game: Game) -> tuple[list[int], Floats] | None:
        order = self._class_order()
        shares, is_exact = attribute_adaptive(self._arrays.pointer, game, order)
        return (order.tolist(), shares) if is_exact else None

    def _class_order(self) -> Integers:
        """Return the classes in the order of River's set, in which it adds their shares."""
        if self._order is None:
            codes = self._arrays.names.classes
            self._order = np.array([codes[label] for label in self._classes], np.int64)
        return self._order

    def _learn(self, row: Floats, layout: Layout, c: int, w: float, *, is_integer: bool) -> None:
        label = self._arrays.labels[c]
        if label not in self._classes:
            self._classes.add(label)
            self._order = None
        of = Given(row, row, layout.columns, layout.features, layout.ranked)
        found = self._loops.visit.call(self._arrays.pointer, of, c, w)
        self._learn_visited(Visited(of, c, w, is_integer, *found))

    def _start(self) -> None:
        if not 0.0 < self.switch_significance <= 2.0:
            raise UnsupportedError(f"switch_significance is {self.switch_significance}")
        if not self.drift_window_threshold >= 0:
            raise UnsupportedError(f"drift_window_threshold is {self.drift_window_threshold}")
        self._classes = set()
        super()._start()

    def _parameters(self) -> dict[str, Any]:
        # leaves with naive Bayes switch no feature off
        return {**super()._parameters(), "remove_poor_attrs": False}

    def _read(self, model: Any) -> None:
        super()._read(model)
        self._classes = copy_of(model.classes)

    def _with_trees(self, river: Any) -> Any:
        if self._made is not None:
            river = super()._with_trees(river)
            river.classes = self._classes
        return river
