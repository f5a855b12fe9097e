"""The evaluator for classification trees, and for forests, bagging and boosting of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier
from river.tree import HoeffdingAdaptiveTreeClassifier

from pipeline.evaluate.base import Label, Observation, Output, Value
from pipeline.evaluate.generic import plain_label
from pipeline.evaluate.hoeffding import kernels
from pipeline.evaluate.hoeffding.bayes import BayesLeaves
from pipeline.evaluate.hoeffding.ensembles import VOTES
from pipeline.evaluate.hoeffding.mirror import Mirror, UnmirroredError, Voter
from pipeline.evaluate.hoeffding.trees import TreeEvaluator, answers, covers
from pipeline.evaluate.inputs import Floats, Inputs, NoNumberError, Rows
from pipeline.evaluate.table import Table

_TREES = (
    tree.HoeffdingTreeClassifier,
    tree.HoeffdingAdaptiveTreeClassifier,
    tree.ExtremelyFastDecisionTreeClassifier,
    BaseTreeClassifier,
)


class TreeClassifierEvaluator(TreeEvaluator):
    """Asks all trees of a classifier about all inputs at once.

    Only the trees that test a replaced feature on the observation's path, or use it in the
    naive-Bayes leaf there, are asked again, and all leaves are asked in one go.

    Parameters
    ----------
    model
        A River classifier for which :meth:`covers` is true.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._vote = VOTES[type(model)]
        self._leaves = BayesLeaves()
        self._mirror = Mirror(self._leaves)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator knows the model's class, and those of its trees."""
        return covers(model, VOTES, _TREES)

    def __call__(self, x: Observation, replacements: Sequence[Mapping[str, Value]]) -> list[Output]:
        """Return one output per replacement; see :class:`Evaluator`."""
        voting = self._voting()
        if not voting:
            return self._one_by_one(x, replacements)
        try:
            votes, unknown = self._votes(voting, Inputs(x, replacements))
        except (NoNumberError, FloatingPointError):
            # River raises for some of these inputs, and answers others
            return self._one_by_one(x, replacements)
        table = self._table(voting, votes)
        if table is None:
            return self._one_by_one(x, replacements)
        outputs = table.outputs()
        for row in unknown:
            [outputs[row]] = self._one_by_one(x, [replacements[row]])
        return outputs

    def evaluate_rows(self, x: Observation, rows: Floats) -> Table | None:
        """Return the outputs on whole inputs; see :class:`TableEvaluator`."""
        voting = self._voting()
        if not voting or not kernels.IS_COMPILED:
            return None
        try:
            votes, unknown = self._mirror.votes(voting, Rows(x, rows))
        except UnmirroredError:
            return None
        return None if unknown else self._table(voting, votes)

    def _voting(self) -> list[Voter]:
        """Return the trees that have a weight, with it."""
        trees = self._vote.trees(self.model)
        weights = self._vote.weights(self.model) if trees else ()
        return [(t, weight) for t, weight in zip(trees, weights, strict=True) if weight]

    def _table(self, voting: Sequence[Voter], votes: Floats) -> Table | None:
        """Return what the votes say; None if it is not finite."""
        shares = self._vote.shares(votes)
        if not np.isfinite(shares).all():
            return None
        known = self._leaves.labels
        labels = list(dict.fromkeys(label for tree, _ in voting for label in _classes(tree)))
        numbers = np.zeros((len(shares) - 1, len(labels)))
        for column, label in enumerate(labels):
            if label in known:  # else no leaf that was asked has met it yet
                numbers[:, column] = shares[:-1, known[label]]
        return Table(tuple(map(plain_label, labels)), numbers)

    def _votes(self, voting: Sequence[Voter], inputs: Inputs) -> tuple[Floats, list[int]]:
        """Return the weighted sums of the trees' answers, and the rows that are not answered."""
        if kernels.IS_COMPILED:
            with suppress(UnmirroredError):
                return self._mirror.votes(voting, inputs)
        trees, weights = zip(*voting, strict=True)
        with np.errstate(over="raise", divide="raise", invalid="ignore", under="ignore"):
            given = answers(trees, self._leaves, inputs)
        for t, voter in enumerate(trees):
            if isinstance(voter, HoeffdingAdaptiveTreeClassifier):
                # River scales the leaf's answer by its error, and then back to a sum of 1
                total = given[t].sum(axis=1, keepdims=True)
                given[t] /= np.where(total == 0.0, 1.0, total)
        given *= np.array(weights)[:, None, None]
        return given.sum(axis=0), []


def _classes(tree: Any) -> Sequence[Label]:
    """Return a tree's classes, in the order of its answers."""
    if isinstance(tree, HoeffdingAdaptiveTreeClassifier):
        return list(tree.classes)
    return sorted(tree.classes)
