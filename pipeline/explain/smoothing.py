"""Exponential smoothing, debiased, with variance and standard error."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fluxplain.evaluate import Output, Table
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import MIXED, Labels, aligned
from fluxplain.explain import kernels
from fluxplain.explain.dependence import COLUMNS, DEFAULT_REACH, SKEW, standard_error
from fluxplain.explain.parameter_checks import check_share

Alpha = float | Sequence[float]
"""One smoothing rate, or several."""


_SMOOTH, _APPROACH = Direct(kernels.smooth), Direct(kernels.approach)


class ExponentialMeans:
    """Exponentially weighted means of several sequences, with variances and standard errors.

    With ``debias``, the estimate after n updates is the weighted mean
    ``Σ w_s v_s`` with ``w_s = α(1-α)^(n-s) / (1-(1-α)^n)``: unbiased for a static model from the
    first update on, and exactly constant for a constant sequence. Without, it starts at 0 and its
    expectation is short of the truth by ``(1-α)^n`` of it.

    ``n`` counts the updates. ``values`` and ``variances`` have the shape (alphas, count). The rates
    are in (0, 1]; about ``2 / (N + 1)`` for a window of N updates. ``reach`` is how many updates
    numbers may depend on each other; see :mod:`~fluxplain.explain.dependence`. It is None for
    numbers with an unknown bias: then no standard error is known.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 1 and Theorem 3.2, for the debiasing;
    iPFI (Fumagalli et al. 2022), Theorem 2, for the bias without, and Eq. 6 for the bound.

    Examples
    --------
    >>> means = ExponentialMeans(2, [0.5])
    >>> for v in (1.0, 1.0, 4.0):
    ...     means.update(np.array([[v, 0.0]]))
    >>> means.values.round(4).tolist(), means.variances.round(4).tolist()
    ([[2.7143, 0.0]], [[2.2041, 0.0]])
    """

    def __init__(
        self,
        count: int,
        alphas: Sequence[float],
        *,
        debias: bool = True,
        reach: int | None = DEFAULT_REACH,
    ) -> None:
        self.alphas = check_alphas(alphas)
        self.reach = DEFAULT_REACH if reach is None else int(reach)
        self._is_biased = reach is None
        self.debias = bool(debias)
        self.n = 0
        self._rates = np.array(self.alphas, np.float64)
        shape = len(self.alphas), count
        self.values, self.variances = np.zeros(shape), np.zeros(shape)
        # Σ α(1-α)^(n-s) = 1-(1-α)^n, and Σ (α(1-α)^(n-s))²
        self._weights = np.zeros(shape) if debias else np.ones(shape)
        self._squares = np.zeros(shape)
        self._followed = np.zeros((*shape, COLUMNS))

    def update(self, increments: Floats) -> None:
        """Take the next values of each sequence, shape (times, count)."""
        _SMOOTH.call(
            np.ascontiguousarray(increments, np.float64),
            self._rates,
            self.debias,
            self.reach,
            self.n,
            self.values,
            self.variances,
            self._weights,
            self._squares,
            self._followed,
        )
        self.n += len(increments)

    @property
    def std_errors(self) -> Floats:
        """Standard errors of the estimates; infinite if too few numbers are known, or biased.

        They hold for numbers that depend on each other; see :func:`standard_error`.
        """
        rows, columns = self.values.shape
        errors = [[self.std_error(row, column) for column in range(columns)] for row in range(rows)]
        return np.array(errors).reshape(rows, columns)

    def std_error(self, row: int, column: int) -> float:
        """Return one of the standard errors."""
        if not self.n or self._is_biased:
            return math.inf
        squares = self._squares.item(row, column) / self._weights.item(row, column) ** 2
        return standard_error(
            self._followed[row, column], self.n, self.alphas[row], self.reach, squares, SKEW
        )


class OutputMean:
    """Debiased exponential mean of model outputs; a missing class counts as 0.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Algorithm 1, line 5, for the mean prediction.
    """

    __slots__ = ("_numbers", "_weight", "alpha", "labels")

    def __init__(self, alpha: float) -> None:
        [self.alpha] = check_alphas([alpha])
        self.labels: Labels = ()
        self._weight = 0.0
        self._numbers: Floats = np.zeros(0)

    @property
    def value(self) -> Output:
        """The mean; empty before the first output."""
        [value] = Table(self.labels, self._numbers[None]).outputs()
        return value

    def update(self, prediction: Table) -> None:
        """Take the model's next output; ``TypeError`` if it is a number after probabilities."""
        if prediction.labels != self.labels:
            labels = tuple(dict.fromkeys((*self.labels, *prediction.labels)))
            if None in labels and len(labels) > 1:
                raise TypeError(MIXED)
            self._numbers, self.labels = self.on(labels), labels
        self._weight = (1.0 - self.alpha) * self._weight + self.alpha
        _APPROACH.call(self._numbers, aligned(prediction, self.labels), self.alpha / self._weight)

    def on(self, labels: Labels) -> Floats:
        """Return the mean with a column for each of the labels."""
        if labels == self.labels:
            return self._numbers
        return aligned(Table(self.labels, self._numbers[None]), labels)[0]  # type: ignore[no-any-return]


Estimated = Literal["values", "variances", "std_errors"]


class Estimates(ABC):
    """Smoothed importances by the name of the feature, group or pair."""

    @abstractmethod
    def _numbers(self, of: Estimated) -> dict[str, float]:
        """Return the values, variances or standard errors by name."""

    @property
    def values(self) -> dict[str, float]:
        """Name → importance, of iPFI and iSAGE in units of the loss; 0 before the first one."""
        return self._numbers("values")

    @property
    def variances(self) -> dict[str, float]:
        """Name → variance of one observation's contribution to the importance."""
        return self._numbers("variances")

    @property
    def std_errors(self) -> dict[str, float]:
        """Name → standard error of the importance; infinite while too little is known."""
        return self._numbers("std_errors")

    def confidence(self, delta: float) -> dict[str, float]:
        """Return name → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {name: confidence_bound(error, delta) for name, error in self.std_errors.items()}


def confidence_bound(std_error: float, delta: float) -> float:
    """Return Chebyshev's bound at level ``delta``: standard error / √δ (iPFI, Eq. 6)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta!r}, but must lie in (0, 1)")
    return std_error / math.sqrt(delta)


def check_alphas(alpha: Alpha) -> tuple[float, ...]:
    """Return the rates, or raise ``ValueError`` for an invalid or repeated one, or none."""
    alphas = alpha if isinstance(alpha, Sequence) else [alpha]
    if not alphas or len(set(alphas)) < len(alphas):
        raise ValueError(f"alpha is {alphas!r}, but must be one number, or several different ones")
    return tuple([float(check_share("alpha", each)) for each in alphas])
