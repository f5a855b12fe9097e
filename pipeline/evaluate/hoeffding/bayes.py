"""Predictions of classification trees' leaves, for a whole forest at once.

Formula and order of operations are those of ``do_naive_bayes_prediction`` in River.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from fluxplain.evaluate.encoding import Encoding, Floats, Observed
from fluxplain.evaluate.evaluator import Label, Value
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.branches import Branches, is_text
from fluxplain.evaluate.hoeffding.leaves import Leaves
from fluxplain.evaluate.hoeffding.tree_kernels import Flags, Integers


class Table(NamedTuple):
    """A leaf's statistics of one categorical feature, at ``position`` among its features.

    ``values`` are the categories, ``weights`` has the shape (categories, classes), and ``totals``
    has the sum of each class's weights.
    """

    feature: str
    position: int
    values: list[Value]
    weights: Floats
    totals: Floats


class BayesLeaves(Leaves):
    """The leaves of classification trees."""

    def __init__(self, branches: Branches) -> None:
        super().__init__(branches)
        self._fixed: Flags = np.zeros(0, np.bool_)
        self._answers: Floats = np.zeros((0, 0))
        self._features: Integers = np.zeros((0, 0), np.int32)
        self._prior: Floats = np.zeros((0, 0))
        self._terms: Floats = np.zeros((0, 3, 0, 0))  # mean, -2 variance, half of its logarithm
        self._flat: Floats = np.zeros((0, 0))
        self._tables: dict[int, list[Table]] = {}

    def _version(self, leaf: Any) -> Hashable:
        return (leaf.splitters is None, *leaf.stats.values())

    def _fill(self, slot: int, leaf: Any, tree: Any) -> bool:
        stats = leaf.stats
        for label in stats:
            self.labels.setdefault(label, len(self.labels))
        how = _reading(leaf, tree)
        self._reserve(len(leaf.splitters or ()))
        self._tables.pop(slot, None)
        self._fixed[slot] = is_fixed = how == "majority" or not sum(stats.values())
        if is_fixed:
            self._answers[slot] = self._shares(stats) if how == "majority" else 0.0
        elif how == "bayes":
            return self._fill_bayes(slot, stats, leaf.splitters)
        return how is not None

    def _shares(self, stats: Mapping[Label, float]) -> list[float]:
        total = sum(stats.values())
        factor = 1 / total if total else 1.0
        shares = [0.0] * self._answers.shape[1]
        for label, weight in stats.items():
            shares[self.labels[label]] = weight * factor
        return shares

    def _fill_bayes(
        self, slot: int, stats: Mapping[Label, float], splitters: Mapping[str, Any]
    ) -> bool:
        most, classes = self._terms.shape[2:]
        total, labels = sum(stats.values()), self.labels
        prior = [-math.inf] * classes
        size = most * classes
        terms = [0.0] * size + [-math.inf] * size + [0.0] * size
        counted = {label for label, weight in stats.items() if weight > 0}
        for label, weight in stats.items():
            # as in River, a class of weight 0 counts as certain
            prior[labels[label]] = math.log(weight / total) if weight > 0 else 0.0
        features = [-1] * most
        tables = []
        for position, (feature, splitter) in enumerate(splitters.items()):
            features[position] = self._branches.names.number(feature)
            if type(splitter) is NominalSplitterClassif:
                tables.append(self._table(feature, position, splitter, counted))
                continue
            if type(splitter) is not GaussianSplitter:
                return False
            for label, density in splitter._att_dist_per_class.items():
                spread = density._var
                mean = spread.mean
                degrees = mean.n - spread.ddof
                if degrees > 0 and label in counted:
                    variance = spread._S / degrees
                    if variance > 0.0:
                        i = position * classes + labels[label]
                        terms[i] = mean._mean
                        terms[size + i] = -2.0 * variance
                        terms[2 * size + i] = 0.5 * math.log(variance)
        self._features[slot] = features
        self._prior[slot] = prior
        self._flat[slot] = terms
        if tables:
            self._tables[slot] = tables
        return True

    def _table(self, feature: str, position: int, splitter: Any, counted: set[Label]) -> Table:
        learned = {
            label: weights
            for label, weights in splitter._att_dist_per_class.items()
            if label in counted
        }
        places = {
            value: i
            for i, value in enumerate(dict.fromkeys(v for w in learned.values() for v in w))
        }
        weights = np.zeros((len(places), self._prior.shape[1]))
        totals = np.ones(self._prior.shape[1])
        for label, of in learned.items():
            column = self.labels[label]
            for value, weight in of.items():
                weights[places[value], column] = weight
            totals[column] = sum(of.values())
        return Table(feature, position, list(places), weights, totals)

    def _reserve(self, features: int) -> None:
        """Make room for all slots, so many features per leaf, and all labels."""
        slots, most, classes = old = (*self._prior.shape[:1], *self._terms.shape[2:])
        size = self._branches.slots.size
        if size <= slots and features <= most and len(self.labels) <= classes:
            return
        slots = slots if size <= slots else 2 * size
        most, classes = max(features, most, 1), max(len(self.labels), classes, 1)
        kept = (slice(0, old[0]), slice(0, old[1]), slice(0, old[2]))
        before = self._features, self._prior, self._terms, self._answers
        fixed = self._fixed
        self._features = np.full((slots, most), -1, np.int32)
        self._prior = np.full((slots, classes), -math.inf)
        self._terms = np.zeros((slots, 3, most, classes))
        self._terms[:, 1] = -math.inf
        self._flat = self._terms.reshape(slots, -1)  # a view with one row per slot
        self._answers = np.zeros((slots, classes))
        self._fixed = np.zeros(slots, np.bool_)
        self._features[kept[:2]] = before[0]
        self._prior[kept[0], kept[2]] = before[1]
        self._terms[kept[0], :, kept[1], kept[2]] = before[2]
        self._answers[kept[0], kept[2]] = before[3]
        self._fixed[kept[0]] = fixed

    def _given(self, observed: Observed, x: Floats, reached: Integers) -> Floats:
        given = np.zeros((*reached.shape, self._prior.shape[1]))
        if not len(self._prior):
            return given[:, :, : len(self.labels)]
        tree_kernels.vote(
            x,
            self._branches.names.columns(observed),
            is_text(observed),
            reached,
            self._fixed,
            self._answers,
            self._features,
            self._prior,
            self._terms,
            *self._joined(observed.encoding, reached),
            2.0,
            given,
        )
        return given[:, :, : len(self.labels)]

    def _joined(
        self, encoding: Encoding, reached: Integers
    ) -> tuple[Integers, Integers, Floats, Floats, Floats]:
        """Return the tables of the reached leaves, one after the other; see the kernel."""
        classes = self._prior.shape[1]
        which = np.full(self._features.shape, -1, np.int32)
        if not self._tables:
            none = np.zeros((0, classes))
            return which, np.zeros(1, np.int32), np.zeros(0), none, none
        slots = set(reached.ravel().tolist()) & self._tables.keys()
        tables = [(slot, table) for slot in slots for table in self._tables[slot]]
        starts = [0]
        codes: list[float] = []
        for number, (slot, table) in enumerate(tables):
            which[slot, table.position] = number
            codes += [encoding.code(table.feature, value) for value in table.values]
            starts.append(len(codes))
        wide = np.zeros((len(codes), classes))
        totals = np.ones((len(tables), classes))
        for number, (_, table) in enumerate(tables):
            known = table.weights.shape[1]  # other leaves may have added classes
            wide[starts[number] : starts[number + 1], :known] = table.weights
            totals[number, :known] = table.totals
        return which, np.array(starts, np.int32), np.array(codes), wide, totals


def _reading(leaf: Any, tree: Any) -> str | None:
    """Return how a leaf predicts: ``"majority"``, ``"bayes"``, or None if River must do it."""
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
"""Prediction method of a Hoeffding adaptive tree's leaves, by the tree's setting."""
