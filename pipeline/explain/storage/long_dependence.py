"""Finds features that resemble even the old records from which their replacements come."""

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.storage.autocorrelation import LONGEST_SPAN, Autocorrelations

TOO_LONG = 0.3
"""Largest sum of autocorrelations, as a share of the age, that counts as harmless.

Where autocorrelations fall exponentially, iPFI of a linear model is about a tenth too small there.
"""


class LongDependence:
    """Compares the sums of the features' autocorrelations with an age of replacements, in records.

    Sums are known after about five times the ``age``. Spans are bounded, so of old replacements
    only every second, third, … record counts.

    Examples
    --------
    >>> import numpy as np
    >>> rng, value, dependence = np.random.default_rng(1), 0.0, LongDependence(2, age=500)
    >>> for _ in range(2_500):
    ...     value += rng.normal()
    ...     dependence.update(np.array([value, rng.normal()]))
    >>> [*dependence.too_long()]
    [0]
    """

    def __init__(self, features: int, age: int) -> None:
        self._step = -(-age // LONGEST_SPAN)
        self._autocorrelations = Autocorrelations(features, age // self._step)
        self._seen = 0

    def update(self, values: Floats) -> None:
        """Take the next values, one for each feature."""
        self._seen += 1
        if self._seen % self._step == 0:
            self._autocorrelations.update(values)

    def too_long(self) -> dict[int, int]:
        """Return place → sum of the autocorrelations, in records, of features with too long ones.

        If values resemble each other for much longer than the age, the sum is estimated too small.
        """
        known = self._autocorrelations
        most = TOO_LONG * known.span
        if known.largest <= most:
            return {}
        sums = known.sums.tolist()
        return {place: round(n * self._step) for place, n in enumerate(sums) if n > most}
