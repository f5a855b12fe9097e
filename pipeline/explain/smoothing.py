"""Exponential smoothing, debiased, with variance and standard error."""

import math
from collections.abc import Collection

import numpy as np

from pipeline.evaluate import Label, Output
from pipeline.evaluate.compiled import plain
from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.outputs import move

_advanced = plain(kernels.advanced)
_moved = plain(kernels.moved)


class _Weights:
    """The weights of a sequence's values in its exponentially weighted mean."""

    __slots__ = ("_squares", "_weight", "alpha", "debias", "n")

    def __init__(self, alpha: float, *, debias: bool = True) -> None:
        self.alpha = check_alpha(alpha)
        self.debias = debias
        self.n = 0
        self._weight = 0.0 if debias else 1.0  # Σ α(1-α)^(n-s) = 1-(1-α)^n
        self._squares = 0.0  # Σ (α(1-α)^(n-s))²

    def advance(self) -> float:
        """Count the next value, and return its weight."""
        self.n += 1
        weight, self._squares = _advanced(self._weight, self._squares, self.alpha)
        if self.debias:
            self._weight = weight
        return self.alpha / self._weight

    def _error(self, variance: float) -> float:
        if self.n == 0:
            return math.inf
        return math.sqrt(variance * self._squares) / self._weight


class ExponentialMean(_Weights):
    """Exponentially weighted mean of a sequence, with its variance and standard error.

    With ``debias``, the estimate after n updates is the weighted mean
    ``Σ w_s v_s`` with ``w_s = α(1-α)^(n-s) / (1-(1-α)^n)``: unbiased for a static model from the
    first update on, and exactly constant for a constant sequence. Without, it starts at 0 and its
    expectation is short of the truth by ``(1-α)^n`` of it.

    Parameters
    ----------
    alpha
        Smoothing, in (0, 1]; about ``2 / (N + 1)`` for a window of N updates.
    debias
        Divide by the sum of the weights.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 1 and Theorem 3.2, for the debiasing;
    iPFI (Fumagalli et al. 2022), Theorem 2, for the bias without, and Eq. 6 for the bound.

    Examples
    --------
    >>> mean = ExponentialMean(alpha=0.5)
    >>> for v in (1.0, 1.0, 4.0):
    ...     mean.update(v)
    >>> round(mean.value, 4), round(mean.variance, 4), round(mean.std_error, 4)
    (2.7143, 2.2041, 0.9719)
    """

    __slots__ = ("value", "variance")

    def __init__(self, alpha: float, *, debias: bool = True) -> None:
        super().__init__(alpha, debias=debias)
        self.value = 0.0
        self.variance = 0.0

    def update(self, v: float) -> None:
        """Take the next value of the sequence."""
        self.value, self.variance = _moved(self.value, self.variance, self.advance(), v)

    def update_run(self, values: Floats) -> None:
        """Take the next values of the sequence, as :meth:`update` takes each."""
        self.n += len(values)
        moved = kernels.smooth_run(
            values, self.alpha, self.debias, self.value, self.variance, self._weight, self._squares
        )
        # what is not compiled gives NumPy's numbers, which are no JSON
        self.value, self.variance, self._weight, self._squares = map(float, moved)

    @property
    def std_error(self) -> float:
        """Standard error of the estimate, sqrt(variance · Σ w_s²); infinite before an update."""
        return self._error(self.variance)

    def confidence(self, delta: float) -> float:
        """Return ε such that ``P(|estimate - expectation| > ε) ≤ delta``, by Chebyshev.

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return confidence_bound(self.std_error, delta)


class ExponentialMeans(_Weights):
    """The :class:`ExponentialMean` of several sequences that go on together.

    Parameters
    ----------
    count
        How many there are.
    alpha, debias
        See :class:`ExponentialMean`.

    Examples
    --------
    >>> means = ExponentialMeans(2, alpha=0.5)
    >>> for v in (1.0, 1.0, 4.0):
    ...     means.update(np.array([v, 0.0]))
    >>> [round(v, 4) for v in means.values.tolist()]
    [2.7143, 0.0]
    """

    __slots__ = ("values", "variances")

    def __init__(self, count: int, alpha: float, *, debias: bool = True) -> None:
        super().__init__(alpha, debias=debias)
        self.values = np.zeros(count)
        self.variances = np.zeros(count)

    def update(self, increments: Floats) -> None:
        """Take the next value of each sequence."""
        kernels.smooth(self.values, self.variances, self.advance(), increments)

    @property
    def std_errors(self) -> list[float]:
        """Standard errors of the estimates; infinite before an update."""
        return [self._error(variance) for variance in self.variances.tolist()]


class OutputMean:
    """Exponentially weighted mean of model outputs; a class that one lacks counts as 0.

    Parameters
    ----------
    alpha
        Smoothing, in (0, 1].
    debias
        Divide by the sum of the weights, as :class:`ExponentialMean` does.

    References
    ----------
    iSAGE (Muschalik et al. 2023), Algorithm 1, line 5, for the mean prediction;
    iPDP, Algorithm 1, line 7, for the effect at a grid point.

    Examples
    --------
    >>> mean = OutputMean(alpha=0.5)
    >>> mean.update({"a": 0.75})
    >>> mean.update({"b": 0.75})
    >>> mean.value
    {'a': 0.25, 'b': 0.5}
    """

    __slots__ = ("_labels", "_numbers", "_value", "_weight", "alpha", "debias")

    def __init__(self, alpha: float, *, debias: bool = True) -> None:
        self.alpha = check_alpha(alpha)
        self.debias = debias
        self._weight = 0.0
        self._value: Output = {}
        self._labels: tuple[Label | None, ...] = ()
        self._numbers: Floats | None = None  # the value, if the last outputs came as arrays

    @property
    def value(self) -> Output:
        """The mean; empty before the first output."""
        if self._numbers is None:
            return self._value
        [value] = Table(self._labels, self._numbers[None]).outputs()
        return value

    def update(self, output: Output) -> None:
        """Take the model's next output."""
        value = self.value if self._weight or isinstance(output, dict) else 0.0
        self._value, self._numbers = move(value, output, self._advance()), None

    def advance(self, labels: tuple[Label | None, ...]) -> tuple[Floats, float] | None:
        """Count the next output, and return the mean and the weight to move it with, in place.

        Parameters
        ----------
        labels
            The classes of the output. If they are not those of the mean, nothing is done.
        """
        if self._numbers is None or labels != self._labels:
            numbers = self._as_numbers(labels)
            if numbers is None:
                return None
            self._labels, self._numbers = labels, numbers
        return self._numbers, self._advance()

    def _as_numbers(self, labels: tuple[Label | None, ...]) -> Floats | None:
        if not self._weight:
            return np.zeros(len(labels))
        value = self.value
        known, numbers = (
            (tuple(value), list(value.values())) if isinstance(value, dict) else ((None,), [value])
        )
        return np.array(numbers) if known == labels else None

    def _advance(self) -> float:
        self._weight = (1.0 - self.alpha) * self._weight + self.alpha
        return self.alpha / self._weight if self.debias else self.alpha


def confidence_bound(std_error: float, delta: float) -> float:
    """Return Chebyshev's bound at level ``delta``: standard error / √δ (iPFI, Eq. 6).

    Examples
    --------
    >>> confidence_bound(0.1, 0.25)
    0.2
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta!r}, but must lie in (0, 1)")
    return std_error / math.sqrt(delta)


def check_alpha(alpha: float) -> float:
    """Return ``alpha``, or raise ``ValueError`` if it is no number in (0, 1]."""
    if isinstance(alpha, Collection) or not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha is {alpha!r}, but must lie in (0, 1]")
    return alpha
