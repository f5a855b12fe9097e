"""River's adaptive random forest for classification, as arrays."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import forest, metrics

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn
from fluxplain.forest.compiled_forest import CompiledForest
from fluxplain.forest.forms import CLASSIFICATION
from fluxplain.forest.names import Layout, UnsupportedError
from fluxplain.forest.summing import ADDED_TYPES
from fluxplain.forest.tree_arrays import TreeArrays
from fluxplain.forest.voting import Voting

_LEARN = Direct(learn.learn_forest)


class ARFClassifier(Voting, CompiledForest, forest.ARFClassifier):
    """River's ``ARFClassifier`` as arrays: the same parameters and numbers.

    ``data`` are copies of the trees; see :class:`CompiledModel`.
    """

    _form, _river_class = CLASSIFICATION, forest.ARFClassifier
    _tree_names = (
        "max_features",
        "grace_period",
        "max_depth",
        "split_criterion",
        "delta",
        "tau",
        "leaf_prediction",
        "nb_threshold",
        "nominal_attributes",
        "splitter",
        "binary_split",
        "min_branch_fraction",
        "max_share_to_split",
        "max_size",
        "memory_estimate_period",
        "stop_mem_management",
        "remove_poor_attrs",
        "merit_preprune",
    )

    _votes: Floats | None = None  # the weights of the trees' votes, until they learn

    def learn_one(self, x: Mapping[Any, Any], y: Any, **_: Any) -> None:
        """Learn an observation as River's forest does."""
        self._begin(x)
        given = self._taken(lambda arrays: arrays.encode_labelled(x, y))
        if given is None:
            self.river.learn_one(x, y)
        else:
            self._learn(given, y)

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each class, as River's forest does."""
        if self._begin(x):
            return {}
        encoded = self._taken(lambda arrays: self._to_vote(arrays, x))
        if encoded is None:
            return self.river.predict_proba_one(x)  # type: ignore[no-any-return]
        return self._voted(*encoded)

    def _to_vote(self, arrays: TreeArrays, x: Mapping[Any, Any]) -> tuple[Floats, Layout]:
        """Encode an observation; raise ``UnsupportedError`` if the votes cannot be added up."""
        self._weights()
        return arrays.encode(x)

    def _weights(self) -> Floats:
        if self._votes is None:
            votes = np.ones(self.n_models)
            for i, metric in enumerate(() if self.disable_weighted_vote else self._metrics):
                value = _value(metric)
                if type(value) not in ADDED_TYPES:
                    raise UnsupportedError(f"a vote's weight is {value!r}")
                if value > 0.0:
                    votes[i] = value
            self._votes = votes
        return self._votes

    def _learn(self, given: tuple[Floats, Layout, int], y: Any) -> None:
        row, layout, label = given
        arrays, n, self._votes = self._arrays, self.n_models, None
        shares = np.empty((n, arrays.size.classes))
        best, drawn, due = arrays.plans(n)
        done, status, is_due = _LEARN.call(
            arrays.pointer,
            self._mains,
            self._backgrounds,
            math.exp(-self.lambda_value),
            row,
            layout.columns,
            layout.features,
            layout.ranked,
            label,
            arrays.words,
            shares,
            best,
            drawn,
            due,
        )
        arrays.settle(due if is_due else None)
        asked = [c for c in best[: done + 1].tolist() if c != learn.NOT_ASKED]
        guesses = [arrays.labels[c] if c >= 0 else None for c in asked]
        seen = self._shares(shares[: len(guesses)]) if self._sees_shares else guesses
        self._finish(done, status, drawn, y, guesses, seen)

    @property
    def _sees_shares(self) -> bool:
        metric = self._metrics[0]
        is_classes = isinstance(metric, metrics.base.ClassificationMetric)
        return is_classes and not metric.requires_labels

    def _shares(self, shares: Floats) -> list[dict[Any, float]]:
        mains = self._mains.tolist()
        return [self._arrays.answer(mains[i], each) for i, each in enumerate(shares)]


def _value(metric: Any) -> float:
    """Return a metric's value; of an accuracy, in less time than River."""
    if type(metric) is metrics.Accuracy and metric.cm.total_weight:
        return metric.cm.total_true_positives / metric.cm.total_weight  # type: ignore[no-any-return]
    return metric.get()  # type: ignore[no-any-return]
