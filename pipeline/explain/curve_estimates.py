"""The importances of smoothed curves, with their variances and standard errors."""

import math

import numpy as np

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import curve_kernels
from fluxplain.explain.dependence import COLUMNS, standard_error
from fluxplain.explain.parameter_checks import check_share


class CurveEstimates:
    """The importances of several curves, which kernels move; ``n`` counts the updates of each.

    ``reach`` is how many updates observations' contributions may depend on each other.

    References
    ----------
    Importance after Greenwell, Boehmke, McCarthy (2018), "A Simple and Effective Model-Based
    Variable Importance Measure".
    """

    def __init__(self, count: int, alpha: float, *, debias: bool, reach: int) -> None:
        self.alpha = float(check_share("alpha", alpha))
        self.reach = reach
        self.debias = bool(debias)
        self.n = np.zeros(count, dtype=np.intp)
        self._kept = np.zeros((count, 6))
        self._followed = np.zeros((count, COLUMNS))

    @property
    def values(self) -> Floats:
        """The importance of each curve."""
        return self._kept[:, curve_kernels.VALUE]

    @property
    def variances(self) -> Floats:
        """Variance of one observation's contribution to the importance, to first order."""
        return self._kept[:, curve_kernels.VARIANCE]

    @property
    def std_errors(self) -> Floats:
        """Standard errors of the importances, to first order; infinite while too little is known.

        See :func:`~fluxplain.explain.dependence.standard_error`.
        """
        return np.array([self.std_error(curve) for curve in range(len(self.n))])

    def std_error(self, curve: int) -> float:
        """Return the standard error of one curve's importance."""
        if not self.n[curve]:
            return math.inf
        n, squares = self.n.item(curve), self._squares(curve)
        return standard_error(self._followed[curve], n, self.alpha, self.reach, squares, 0.0)

    def _squares(self, curve: int) -> float:
        """Return the sum of the squares of the observations' weights in a curve."""
        kept: list[float] = self._kept[curve].tolist()
        weight = kept[curve_kernels.WEIGHT]
        return kept[curve_kernels.SQUARES] / weight**2 if weight else 0.0
