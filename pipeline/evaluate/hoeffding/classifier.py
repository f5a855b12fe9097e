"""The evaluator for classification trees, and for forests, bagging and boosting of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.evaluator import Label
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.bayes_leaves import BayesLeaves
from fluxplain.evaluate.hoeffding.trees import TreeEvaluator, covers
from fluxplain.evaluate.hoeffding.votes import VOTES
from fluxplain.evaluate.table import Table, in_order

_ADAPTIVE = tree.HoeffdingAdaptiveTreeClassifier

_TREES = (
    tree.HoeffdingTreeClassifier,
    _ADAPTIVE,
    tree.ExtremelyFastDecisionTreeClassifier,
    BaseTreeClassifier,
)


class TreeClassifierEvaluator(TreeEvaluator):
    """Evaluates all trees of a classifier on all inputs at once.

    Parameters
    ----------
    model
        A River classifier for which :meth:`covers` is true.
    """

    LEAVES = BayesLeaves

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports the model and its trees."""
        return covers(model, VOTES, _TREES)

    def _table(self, inputs: Inputs) -> Table | None:
        vote = VOTES[type(self.model)]
        trees = vote.trees(self.model)
        weights = vote.weights(self.model) if trees else ()
        pairs = zip(trees, weights, strict=True)
        voting = [(tree, weight) for tree, weight in pairs if weight is not None]
        if not voting:
            return None
        trees = [t for t, _ in voting]
        labels = _classes(trees)
        self._number_classes(labels)
        given = self._answers(trees, inputs)
        if type(trees[0]) is _ADAPTIVE:
            # River scales the leaf's prediction by its error, then normalizes it
            total = given.sum(axis=2, keepdims=True)
            given /= np.where(total == 0.0, 1.0, total)
        votes, factors = np.zeros(given.shape[1:]), np.array([weight for _, weight in voting])
        tree_kernels.weighted_sum(given, factors, votes)
        shares = vote.shares(votes)
        known = self._leaves.labels
        if list(known) == labels:
            return Table(tuple(map(plain_label, labels)), shares)
        numbers = np.zeros((len(shares), len(labels)))
        for column, label in enumerate(labels):
            if label in known:  # otherwise no reached leaf has seen it
                numbers[:, column] = shares[:, known[label]]
        return Table(tuple(map(plain_label, labels)), numbers)

    def _number_classes(self, classes: Sequence[Label]) -> None:
        """Give the classes columns in an order of their own.

        In each process, and whatever was asked before, numbers are added in the same order.
        """
        known = self._leaves.labels
        if len(known) < len(classes) or not known.keys() >= set(classes):
            self._forget()
            ordered = in_order(classes)
            self._leaves.labels = {label: column for column, label in enumerate(ordered)}


def _classes(trees: Sequence[Any]) -> list[Label]:
    """Return the classes of all trees, in the order of their answers."""
    first, *others = trees
    if all(each.classes == first.classes for each in others):
        trees = [first]
    return list(
        dict.fromkeys(
            label
            for each in trees
            for label in (each.classes if type(each) is _ADAPTIVE else sorted(each.classes))
        )
    )
