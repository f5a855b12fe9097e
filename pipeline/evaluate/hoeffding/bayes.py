"""What the leaves of classification trees answer, of a whole forest at once.

What a naive-Bayes leaf has learned is copied into flat arrays when it is reached and has learned
since. The formula, and the order of its operations, are those of ``do_naive_bayes_prediction`` in
River.
"""

import math
import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from pipeline.evaluate.base import Label, Observation, Value
from pipeline.evaluate.hoeffding.kernels import FAR, HALF_LOG_TAU
from pipeline.evaluate.hoeffding.leaves import Leaves, Place
from pipeline.evaluate.inputs import Floats, Inputs


class BayesPlace(Place):
    """A leaf's row in the arrays.

    Attributes
    ----------
    counted
        The labels that it has seen.
    nominal
        Its categorical features: name, position among all of its features, splitter.
    logs
        What each category adds to the votes, as far as it was needed.
    """

    __slots__ = ("counted", "logs", "nominal")

    def __init__(self, index: int, leaf: "weakref.ref[Any]") -> None:
        super().__init__(index, leaf)
        self.counted: set[Label] = set()
        self.nominal: list[tuple[str, int, Any]] = []
        self.logs: dict[tuple[str, Value], list[float]] = {}


class BayesLeaves(Leaves[BayesPlace]):
    """The leaves of a forest's classification trees, as arrays.

    Attributes
    ----------
    columns
        Feature → column of the inputs, from 1 on.
    """

    def __init__(self) -> None:
        super().__init__(BayesPlace)
        self.columns: dict[str, int] = {}
        self._column: NDArray[np.intp] = np.zeros((0, 0), dtype=np.intp)
        self._prior: Floats = np.zeros((0, 0))
        self._terms: Floats = np.zeros((0, 3, 0, 0))  # mean, -2 variance, half of its logarithm
        self._flat: Floats = np.zeros((0, 0))
        self._fixed: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._answers: Floats = np.zeros((0, 0))

    def ask(self, inputs: Inputs, rows: Sequence[int], places: Sequence[BayesPlace]) -> Floats:
        """Return probabilities; 0 for a class that a leaf does not know. See :class:`Leaves`."""
        matrix = inputs.matrix(self.columns)
        at = np.array([place.index for place in places])
        x = matrix[np.array(rows)[:, None], self._column[at]]
        mean, scale, spread = np.moveaxis(self._terms[at], 1, 0)
        terms = x[:, :, None] - mean
        terms *= terms
        terms /= scale
        terms -= HALF_LOG_TAU
        terms -= spread
        for here in zip(*np.nonzero(terms < FAR), strict=True):
            # Python squares with a last bit of its own, which matters in large terms
            distance = float(x[here[:2]] - mean[here])
            terms[here] = distance**2 / float(scale[here]) - HALF_LOG_TAU - float(spread[here])
        # no number: the feature is missing, or categorical; no scale: the class has no density
        terms = np.where((terms > -math.inf) & (scale > -math.inf), terms, 0.0)
        for i, place in enumerate(places):
            for feature, position, splitter in place.nominal:
                terms[i, position] = self._nominal(place, feature, splitter, inputs, rows[i])
        terms[:, 0] += self._prior[at]
        votes: Floats = terms.sum(axis=1)
        highest = votes.max(axis=1)
        total = np.exp(votes - highest[:, None]).sum(axis=1)
        answers: Floats = np.exp(votes - (highest + np.log(total))[:, None])
        return answers

    def arrays(self) -> tuple[NDArray[np.bool_], Floats, NDArray[np.intp], Floats, Floats]:
        """Return of each place: whether its answer is fixed, that answer, columns, prior, terms.

        The terms have the shape (places, 3, features, classes): mean, -2 variance (-inf where the
        class has no density) and half the variance's logarithm.
        """
        return self._fixed, self._answers, self._column, self._prior, self._terms

    def ask_itself(self, tree: Any, leaf: Any, x: Observation) -> Mapping[Any, float]:
        """Return River's answer; see :class:`Leaves`."""
        answer: Mapping[Any, float]
        answer = tree.predict_proba_one(x) if leaf is None else leaf.prediction(x, tree=tree)
        return answer

    def _version(self, leaf: Any) -> Hashable:
        return (leaf.splitters is None, *leaf.stats.values())

    def _fill(self, place: BayesPlace, leaf: Any, tree: Any) -> None:
        stats = leaf.stats
        for label in stats:
            self.labels.setdefault(label, len(self.labels))
        place.nominal = []
        place.logs = {}
        how = _reading(leaf, tree)
        place.asked = how is None
        self._reserve(len(leaf.splitters or ()))
        if how == "majority":
            place.answer = self._shares(stats)
        elif how == "bayes" and not sum(stats.values()):
            place.answer = [0.0] * len(self.labels)
        elif how == "bayes":
            self._fill_bayes(place, stats, leaf.splitters)
        self._fixed[place.index] = place.answer is not None
        if place.answer is not None:
            self._answers[place.index, : len(place.answer)] = place.answer

    def _shares(self, stats: dict[Label, float]) -> list[float]:
        total = sum(stats.values())
        factor = 1 / total if total else 1.0
        shares = [0.0] * len(self.labels)
        for label, weight in stats.items():
            shares[self.labels[label]] = weight * factor
        return shares

    def _fill_bayes(
        self, place: BayesPlace, stats: dict[Label, float], splitters: dict[str, Any]
    ) -> None:
        features, classes = self._terms.shape[2:]
        total = sum(stats.values())
        labels = self.labels
        prior = [-math.inf] * classes
        size = features * classes
        terms = [0.0] * size + [-math.inf] * size + [0.0] * size
        place.counted = {label for label, weight in stats.items() if weight > 0}
        for label, weight in stats.items():
            # River's quirk: a class of weight 0 counts as if it were certain
            prior[labels[label]] = math.log(weight / total) if weight > 0 else 0.0
        columns = [0] * features
        for position, (feature, splitter) in enumerate(splitters.items()):
            if type(splitter) is not GaussianSplitter:
                if type(splitter) is not NominalSplitterClassif:
                    place.asked = True
                    return
                place.nominal.append((feature, position, splitter))
                continue
            columns[position] = self.columns.setdefault(feature, len(self.columns) + 1)
            for label, density in splitter._att_dist_per_class.items():
                spread = density._var
                mean = spread.mean
                degrees = mean.n - spread.ddof
                if degrees > 0 and label in place.counted:
                    variance = spread._S / degrees
                    if variance > 0.0:
                        i = position * classes + labels[label]
                        terms[i] = mean._mean
                        terms[size + i] = -2.0 * variance
                        terms[2 * size + i] = 0.5 * math.log(variance)
        place.uses = tuple(splitters)
        self._column[place.index] = columns
        self._prior[place.index] = prior
        self._flat[place.index] = terms

    def _reserve(self, features: int) -> None:
        """Make room for all places, for so many features a leaf, and for all labels."""
        rows, most, classes = old = (*self._prior.shape[:1], *self._terms.shape[2:])
        if self.size <= rows and features <= most and len(self.labels) <= classes:
            return
        rows = rows if self.size <= rows else 2 * self.size
        most, classes = max(features, most, 1), max(len(self.labels), classes, 1)
        kept = (slice(0, old[0]), slice(0, old[1]), slice(0, old[2]))
        column, prior, terms = self._column, self._prior, self._terms
        fixed, answers = self._fixed, self._answers
        self._column = np.zeros((rows, most), dtype=np.intp)
        self._prior = np.full((rows, classes), -math.inf)
        self._terms = np.zeros((rows, 3, most, classes))
        self._terms[:, 1] = -math.inf
        self._flat = self._terms.reshape(rows, -1)  # the same numbers, a row a place
        self._fixed = np.zeros(rows, dtype=np.bool_)
        self._answers = np.zeros((rows, classes))
        self._column[kept[:2]] = column
        self._prior[kept[0], kept[2]] = prior
        self._terms[kept[0], :, kept[1], kept[2]] = terms
        self._fixed[kept[0]] = fixed
        self._answers[kept[0], kept[2]] = answers

    def _nominal(
        self, place: BayesPlace, feature: str, splitter: Any, inputs: Inputs, row: int
    ) -> list[float]:
        """Return the logarithms that one category adds to the votes."""
        classes = self._prior.shape[1]
        try:
            value = inputs.value(row, feature)
        except KeyError:
            return [0.0] * classes
        logs = place.logs.get((feature, value))
        if logs is None or len(logs) < classes:  # a class may have come since, in another leaf
            logs = place.logs[feature, value] = [0.0] * classes
            for label, weights in splitter._att_dist_per_class.items():
                weight = weights.get(value, 0.0)
                if weight > 0 and label in place.counted:
                    logs[self.labels[label]] = math.log(weight / sum(weights.values()))
        return logs


def _reading(leaf: Any, tree: Any) -> str | None:
    """Return how a leaf answers: ``"majority"``, ``"bayes"``, or None if it must be asked."""
    prediction = type(leaf).prediction
    if prediction is AdaLeafClassifier.prediction and leaf.stats:
        prediction = _ADAPTIVE_TREE.get(tree.leaf_prediction)
    if prediction is LeafMajorityClass.prediction:
        return "majority"
    if prediction is LeafNaiveBayes.prediction:
        bayes = leaf.is_active() and leaf.total_weight >= tree.nb_threshold
        return "bayes" if bayes else "majority"
    if prediction is LeafNaiveBayesAdaptive.prediction:
        bayes = leaf.is_active() and leaf._nb_correct_weight >= leaf._mc_correct_weight
        return "bayes" if bayes else "majority"
    return None


_ADAPTIVE_TREE = {
    "mc": LeafMajorityClass.prediction,
    "nb": LeafNaiveBayes.prediction,
    "nba": LeafNaiveBayesAdaptive.prediction,
}
"""What a leaf of a Hoeffding adaptive tree does, by the tree's setting."""
