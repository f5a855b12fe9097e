"""Base of the evaluators of tree classifiers and tree regressors."""

from collections.abc import Container, Sequence
from typing import Any, ClassVar

import numpy as np

from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.evaluator import Observation
from fluxplain.evaluate.fast import CopyingEvaluator
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.leaves import Leaves


class TreeEvaluator(CopyingEvaluator):
    """Evaluates all trees on all inputs at once."""

    LEAVES: ClassVar[type[Leaves]]

    def _forget(self) -> None:
        self._leaves = self.LEAVES(Branches())

    def _answers(self, trees: Sequence[Any], inputs: Inputs) -> Floats:
        """Return each tree's prediction on each input, shape (trees, inputs, labels)."""
        observed, rows = inputs
        x = np.concatenate([rows, observed.numbers[None, :]])
        given, reached, is_complete = self._leaves.answers(trees, observed, x)
        given = given[:, :-1]
        if is_complete:
            return given
        xs = inputs.dicts()
        labels = self._leaves.labels
        for t, row in np.argwhere(reached[:, :-1] < 0).tolist():
            if trees[t]._root is None:
                continue
            for label, number in _asked(trees[t], xs[row]).items():
                column = labels.setdefault(label, len(labels))
                if column >= given.shape[2]:
                    given = np.pad(given, ((0, 0), (0, 0), (0, 1)))
                given[t, row, column] = number
        return given


def _asked(tree: Any, x: Observation) -> dict[Any, float]:
    """Return River's prediction on one input."""
    if hasattr(tree, "predict_proba_one"):
        return tree.predict_proba_one(x)  # type: ignore[no-any-return]
    return {None: tree.predict_one(x)}


def covers(model: object, known: Container[type], trees: Container[type]) -> bool:
    """Return whether the classes of a model and of its trees are known."""
    base = getattr(model, "model", None)  # bagging and boosting keep copies of it
    return type(model) in known and (base is None or type(base) in trees)
