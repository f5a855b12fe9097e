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
from pipeline.evaluate.hoeffding.leaves import Leaves, Place
from pipeline.evaluate.inputs import Floats, Inputs

HALF_LOG_TAU = 0.5 * math.log(math.tau)

FAR = -200.0
"""Log-densities below it are computed as Python does; above, a last bit makes less than 1e-13."""


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
        self.counted: frozenset[Label] = frozenset()
        self.nominal: list[tuple[str, int, Any]] = []
        self.logs: dict[tuple[str, Value], list[float]] = {}


class BayesLeaves(Leaves[BayesPlace]):
    """The leaves of a forest's classification trees, as arrays."""

    def __init__(self) -> None:
        super().__init__(BayesPlace)
        self._columns: dict[str, int] = {}
        self._column: NDArray[np.intp] = np.zeros((0, 0), dtype=np.intp)
        self._prior: Floats = np.zeros((0, 0))
        self._terms: Floats = np.zeros((4, 0, 0, 0))  # mean, -2 variance, two to take away

    def ask(self, inputs: Inputs, rows: Sequence[int], places: Sequence[BayesPlace]) -> Floats:
        """Return probabilities; 0 for a class that a leaf does not know. See :class:`Leaves`."""
        matrix = inputs.matrix(self._columns)
        at = np.array([place.index for place in places])
        x = matrix[np.array(rows)[:, None], self._column[at]]
        mean, scale, first, second = self._terms[:, at]
        terms = x[:, :, None] - mean
        terms *= terms
        terms /= scale
        terms -= first
        terms -= second
        for row, feature, label in zip(*np.nonzero(terms < FAR), strict=True):
            # Python squares with a last bit of its own, which matters in large terms
            distance = float(x[row, feature] - mean[row, feature, label])
            terms[row, feature, label] = (
                distance**2 / float(scale[row, feature, label])
                - float(first[row, feature, label])
                - float(second[row, feature, label])
            )
        # no number: the feature is missing, or categorical
        terms = np.where(terms > -math.inf, terms, 0.0)
        for i, place in enumerate(places):
            for feature, position, splitter in place.nominal:
                terms[i, position] = self._nominal(place, feature, splitter, inputs, rows[i])
        terms[:, 0] += self._prior[at]
        votes: Floats = terms.sum(axis=1)
        highest = votes.max(axis=1)
        total = np.exp(votes - highest[:, None]).sum(axis=1)
        answers: Floats = np.exp(votes - (highest + np.log(total))[:, None])
        return answers

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
        how = _reading(leaf, tree)
        place.asked = how is None
        if how == "majority":
            place.answer = self._shares(stats)
        elif how == "bayes" and not sum(stats.values()):
            place.answer = [0.0] * len(self.labels)
        elif how == "bayes":
            self._fill_bayes(place, stats, leaf.splitters)

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
        self._reserve(max(len(splitters), 1))
        _, features, classes = self._terms.shape[1:]
        total = sum(stats.values())
        prior = [-math.inf] * classes
        for label, weight in stats.items():
            # River's quirk: a class of weight 0 counts as if it were certain
            prior[self.labels[label]] = math.log(weight / total) if weight > 0 else 0.0
        columns = [0] * features
        none = [0.0] * classes
        mean, first, second = [none] * features, [none] * features, [none] * features
        scale = [[-math.inf] * classes] * features
        place.logs = {}
        place.counted = frozenset(label for label, weight in stats.items() if weight > 0)
        for position, (feature, splitter) in enumerate(splitters.items()):
            if type(splitter) is NominalSplitterClassif:
                place.nominal.append((feature, position, splitter))
                continue
            if type(splitter) is not GaussianSplitter:
                place.asked = True
                return
            columns[position] = self._columns.setdefault(feature, len(self._columns) + 1)
            mean[position], scale[position] = none.copy(), scale[position].copy()
            first[position], second[position] = none.copy(), none.copy()
            for label, density in splitter._att_dist_per_class.items():
                spread = density._var
                degrees = spread.mean.n - spread.ddof
                variance = spread._S / degrees if degrees > 0 else 0.0
                if variance > 0.0 and label in place.counted:
                    c = self.labels[label]
                    mean[position][c] = spread.mean._mean
                    scale[position][c] = -2.0 * variance
                    first[position][c] = HALF_LOG_TAU
                    second[position][c] = 0.5 * math.log(variance)
        place.uses = tuple(splitters)
        self._column[place.index] = columns
        self._prior[place.index] = prior
        self._terms[:, place.index] = (mean, scale, first, second)

    def _reserve(self, features: int) -> None:
        """Make room for all places, for so many features a leaf, and for all labels."""
        old = self._terms.shape[1:]
        need = (self._size, features, len(self.labels))
        if all(n <= o for n, o in zip(need, old, strict=True)):
            return
        rows = old[0] if need[0] <= old[0] else 2 * need[0]
        size = (rows, max(need[1], old[1]), max(need[2], old[2]))
        column, prior, terms = self._column, self._prior, self._terms
        self._column = np.zeros(size[:2], dtype=np.intp)
        self._prior = np.full((rows, size[2]), -math.inf)
        self._terms = np.zeros((4, *size))
        self._terms[1] = -math.inf
        self._column[: old[0], : old[1]] = column
        self._prior[: old[0], : old[2]] = prior
        self._terms[:, : old[0], : old[1], : old[2]] = terms

    def _nominal(
        self, place: BayesPlace, feature: str, splitter: Any, inputs: Inputs, row: int
    ) -> list[float]:
        """Return the logarithms that one category adds to the votes."""
        classes = self._terms.shape[3]
        try:
            value = inputs.value(row, feature)
        except KeyError:
            return [0.0] * classes
        logs = place.logs.get((feature, value))
        if logs is None:
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
