"""The evaluator for regression trees, and for forests and bagging of them."""

import numpy as np
from river import ensemble, tree

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.hoeffding.combinations import COMBINATIONS
from fluxplain.evaluate.hoeffding.regression import RegressionLeaves
from fluxplain.evaluate.hoeffding.trees import TreeEvaluator, covers
from fluxplain.evaluate.table import Table

_TREES = (tree.HoeffdingTreeRegressor, tree.HoeffdingAdaptiveTreeRegressor)


class TreeRegressorEvaluator(TreeEvaluator):
    """Evaluates all trees of a regressor on all inputs at once.

    Parameters
    ----------
    model
        A River regressor for which :meth:`covers` is true.
    """

    LEAVES = RegressionLeaves

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports the model and its trees."""
        # the linear models of leaves must not see features beyond a member's patch
        is_patches = isinstance(model, ensemble.SRPRegressor)
        return not is_patches and covers(model, COMBINATIONS, _TREES)

    def _table(self, inputs: Inputs) -> Table | None:
        combination = COMBINATIONS[type(self.model)]
        trees = combination.trees(self.model)
        if not trees:
            return None
        given = self._answers(trees, inputs)[:, :, 0]
        outputs = combination.combine(self.model, np.ascontiguousarray(given.T))
        numbers = np.array(outputs, np.float64)[:, None]
        return Table((None,), numbers)
