"""Predictions of classification trees' leaves, for a whole forest at once.

Formula and order of operations are those of ``do_naive_bayes_prediction`` in River.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.htc_nodes import LeafMajorityClass, LeafNaiveBayes, LeafNaiveBayesAdaptive
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.evaluator import Label
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.category_lists import Tables
from fluxplain.evaluate.hoeffding.leaves import Leaves
from fluxplain.evaluate.hoeffding.tree_kernels import Flags, Integers


class BayesLeaves(Leaves):
    """The leaves of classification trees."""

    def __init__(self, branches: Branches) -> None:
        super().__init__(branches)
        self._fixed: Flags = np.zeros(0, np.bool_)
        self._answers: Floats = np.zeros((0, 0))
        self._features: Integers = np.zeros((0, 0), np.int32)
        self._prior: Floats = np.zeros((0, 0))
        self._terms: Floats = np.zeros((0, 0, 3, 0))  # mean, -2 variance, half of its logarithm
        self._flat: Floats = np.zeros((0, 0, 0))
        self._tables: Integers = np.zeros((0, 0, 0), np.int32)
        self._categories = Tables()
        # node → leaf, its features, and what each class had learned
        self._written: dict[int, tuple[Any, tuple[str, ...], dict[Label, float]]] = {}

    def answers(
        self, trees: Sequence[Any], observed: Observed, x: Floats
    ) -> tuple[Floats, Integers, bool]:
        """Return the predictions; see :meth:`Leaves.answers`."""
        if self._categories.lists.is_wasteful:
            self._categories, self._written = Tables(), {}
            self._tables[:] = -1
            self.forget()
        return super().answers(trees, observed, x)

    def _weight(self, leaf: Any) -> float:
        weight: float = sum(leaf.stats.values())
        return weight

    def _version(self, leaf: Any) -> Hashable:
        return (leaf.splitters is None, *leaf.stats.values())

    def _fill(self, node: int, leaf: Any, tree: Any) -> bool:
        stats = leaf.stats
        for label in stats:
            self.labels.setdefault(label, len(self.labels))
        how = _reading(leaf, tree)
        self._reserve(len(leaf.splitters or ()))
        self._fixed[node] = is_fixed = how == "majority" or not sum(stats.values())
        if is_fixed:
            self._answers[node] = self._shares(stats) if how == "majority" else 0.0
        elif how == "bayes":
            return self._fill_bayes(node, leaf)
        return how is not None

    def _shares(self, stats: Mapping[Label, float]) -> list[float]:
        total = sum(stats.values())
        factor = 1 / total if total else 1.0
        shares = [0.0] * self._answers.shape[1]
        for label, weight in stats.items():
            shares[self.labels[label]] = weight * factor
        return shares

    def _fill_bayes(self, node: int, leaf: Any) -> bool:
        """Copy the densities of the classes that have learned since they were last copied."""
        stats, labels, features = leaf.stats, self.labels, tuple(leaf.splitters)
        of, known, written = self._written.get(node, _NOTHING)
        if of is not leaf or known != features:
            if {type(each) for each in leaf.splitters.values()} - _SPLITTERS:
                return False
            written = {}
            self._reset(node)
            self._features[node, : len(features)] = list(map(self._branches.number, features))
        total = sum(stats.values())
        for label, weight in stats.items():
            # as in River, a class of weight 0 counts as certain
            self._prior[node, labels[label]] = math.log(weight / total) if weight > 0 else 0.0
        for label, weight in stats.items():
            if weight > 0 and written.get(label) != weight:
                self._fill_class(node, leaf, label)
        self._written[node] = leaf, features, dict(stats)
        return True

    def _reset(self, node: int) -> None:
        """Forget the leaf that had a node's number before."""
        self._features[node], self._prior[node], self._terms[node, :, 1] = -1, -math.inf, -math.inf
        tables = self._tables[node]
        for number in tables[tables >= 0].tolist():
            self._categories.release(number)
        tables[:] = -1

    def _fill_class(self, node: int, leaf: Any, label: Label) -> None:
        """Copy the densities of one class."""
        column, most = self.labels[label], self._terms.shape[3]
        terms = [0.0] * most + [-math.inf] * most + [0.0] * most
        for position, (feature, splitter) in enumerate(leaf.splitters.items()):
            learned = splitter._att_dist_per_class.get(label)
            if type(splitter) is NominalSplitterClassif:
                if learned is not None:
                    place = node, column, position
                    number = int(self._tables[place])
                    self._tables[place] = self._categories.write(number, feature, learned)
            elif learned is not None:
                spread = learned._var
                degrees = spread.mean.n - spread.ddof
                variance = spread._S / degrees if degrees > 0 else 0.0
                if variance > 0.0:
                    terms[position] = spread.mean._mean
                    terms[most + position] = -2.0 * variance
                    terms[2 * most + position] = 0.5 * math.log(variance)
        self._flat[node, column] = terms

    def _reserve(self, features: int) -> None:
        """Make room for all nodes, so many features per leaf, and all labels."""
        nodes, classes, _, most = old = self._terms.shape
        size = len(self._branches.nodes.kind)
        if size <= nodes and features <= most and len(self.labels) <= classes:
            return
        nodes = size
        most, classes = max(features, most, 1), max(len(self.labels), classes, 1)
        before = self._features, self._prior, self._terms, self._answers, self._tables, self._fixed
        self._features = np.full((nodes, most), -1, np.int32)
        self._prior = np.full((nodes, classes), -math.inf)
        self._terms = np.zeros((nodes, classes, 3, most))
        self._terms[:, :, 1] = -math.inf
        self._flat = self._terms.reshape(nodes, classes, -1)  # a view
        self._tables = np.full((nodes, classes, most), -1, np.int32)
        self._answers = np.zeros((nodes, classes))
        self._fixed = np.zeros(nodes, np.bool_)
        nodes, classes, _, most = old
        self._features[:nodes, :most], self._prior[:nodes, :classes] = before[:2]
        self._terms[:nodes, :classes, :, :most], self._answers[:nodes, :classes] = before[2:4]
        self._tables[:nodes, :classes, :most], self._fixed[:nodes] = before[4:]

    def _given(self, observed: Observed, x: Floats, reached: Integers) -> tuple[Floats, bool]:
        given = np.zeros((*reached.shape, self._prior.shape[1]))
        if not len(self._prior):
            return given[:, :, : len(self.labels)], False
        columns, is_text = self._branches.columns(observed)
        places, codes, weights, totals = self._categories.arrays(observed.encoding)
        is_complete = tree_kernels.vote(
            x,
            columns,
            is_text,
            reached,
            self._fixed,
            self._answers,
            self._features,
            self._prior,
            self._terms,
            self._tables,
            places,
            codes,
            weights,
            totals,
            2.0,
            given,
        )
        return given[:, :, : len(self.labels)], is_complete


_SPLITTERS = {GaussianSplitter, NominalSplitterClassif}

_NOTHING: tuple[Any, tuple[str, ...], dict[Label, float]] = (None, (), {})


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
