"""The evaluator for classification trees, and for forests, bagging and boosting of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier
from river.tree import HoeffdingAdaptiveTreeClassifier

from pipeline.evaluate.base import Label, Observation, Output, Value
from pipeline.evaluate.generic import GenericEvaluator, plain_label
from pipeline.evaluate.hoeffding.bayes import BayesLeaves
from pipeline.evaluate.hoeffding.ensembles import VOTES
from pipeline.evaluate.hoeffding.trees import answers
from pipeline.evaluate.inputs import Inputs, NoNumberError

_TREES = (
    tree.HoeffdingTreeClassifier,
    tree.HoeffdingAdaptiveTreeClassifier,
    tree.ExtremelyFastDecisionTreeClassifier,
    BaseTreeClassifier,
)


class TreeClassifierEvaluator:
    """Asks all trees of a classifier about all inputs at once.

    Only the trees that test a replaced feature on the observation's path, or use it in the
    naive-Bayes leaf there, are asked again, and all leaves are asked in one go.

    Parameters
    ----------
    model
        A River classifier for which :meth:`covers` is true.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._vote = VOTES[type(model)]
        self._one_by_one = GenericEvaluator(model)
        self._leaves = BayesLeaves()

    def __getstate__(self) -> dict[str, Any]:
        # what is copied from the leaves is copied again when it is needed
        return {"model": self.model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator knows the model's class, and those of its trees."""
        kind = VOTES.get(type(model))
        if kind is None:
            return False
        base = getattr(model, "model", None)  # of which bagging and boosting keep copies
        return type(base) in _TREES if base is not None else True

    def __call__(self, x: Observation, replacements: Sequence[Mapping[str, Value]]) -> list[Output]:
        """Return one output per replacement; see :class:`Evaluator`."""
        trees = self._vote.trees(self.model)
        weights = self._vote.weights(self.model) if trees else ()
        voting = [t for t, weight in zip(trees, weights, strict=True) if weight]
        if not voting:
            return self._one_by_one(x, replacements)
        try:
            with np.errstate(over="raise", divide="raise", invalid="ignore", under="ignore"):
                given = answers(voting, self._leaves, Inputs(x, replacements))
                for t, voter in enumerate(voting):
                    if isinstance(voter, HoeffdingAdaptiveTreeClassifier):
                        # River scales the leaf's answer by its error, and then back to a sum of 1
                        total = given[t].sum(axis=1, keepdims=True)
                        given[t] /= np.where(total == 0.0, 1.0, total)
                given *= np.array([weight for weight in weights if weight])[:, None, None]
                shares = self._vote.shares(given.sum(axis=0))
        except (NoNumberError, FloatingPointError):
            # River raises for some of these inputs, and answers others
            return self._one_by_one(x, replacements)
        if not np.isfinite(shares).all():
            return self._one_by_one(x, replacements)
        known = self._leaves.labels
        labels = list(dict.fromkeys(label for tree in voting for label in _classes(tree)))
        columns = [known[label] for label in labels if label in known]
        names = [plain_label(label) for label in labels if label in known]
        return [dict(zip(names, row, strict=True)) for row in shares[:-1, columns].tolist()]


def _classes(tree: Any) -> Sequence[Label]:
    """Return a tree's classes, in the order of its answers."""
    if isinstance(tree, HoeffdingAdaptiveTreeClassifier):
        return list(tree.classes)
    return sorted(tree.classes)
