"""Values of a feature that lie outside of all before."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fluxplain.schemas.record import Value

LEAST = 100
"""Values before the first outlier."""

BEYOND = 0.5
"""An outlier is so many times the width of the range before beyond it."""

MOST_STRANGE = 20
"""So many outliers among about as many values are none any more: the feature has moved."""

FADING = 0.05
"""What a value within the range takes from their count."""

MOST_KNOWN = 1_000
"""Most categories that are remembered; a feature with more has no outliers."""

MOST_KEPT = 2_000
"""Outliers that are kept, the newest ones: those of a feature that is far ahead of the others must
not take the places of those that changes of the others still need."""


class Outlier(NamedTuple):
    """An observation with a value outside of ``low`` to ``high``; None for a new category."""

    seq: int
    value: Value
    low: float | None = None
    high: float | None = None

    def is_beyond(self, widths: float) -> bool:
        """Return whether a number lies so many widths of the range outside of it.

        Examples
        --------
        >>> outlier = Outlier(seq=7, value=35.0, low=0.0, high=10.0)
        >>> outlier.is_beyond(2.0), outlier.is_beyond(3.0)
        (True, False)
        """
        if self.low is None or self.high is None:
            return False
        margin = widths * (self.high - self.low)
        return not self.low - margin <= float(self.value) <= self.high + margin


class Outliers:
    """Finds the outliers of one feature.

    An outlier does not widen the range, unless many follow.

    Examples
    --------
    >>> outliers = Outliers(categorical=False)
    >>> for seq, pressure in enumerate([1000.0 + n % 30 for n in range(200)] + [5503.0, 5504.0]):
    ...     outliers.add(seq, pressure)
    >>> [(each.seq, each.value, each.low, each.high) for each in outliers.newest]
    [(200, 5503.0, 1000.0, 1029.0), (201, 5504.0, 1000.0, 1029.0)]
    """

    def __init__(self, *, categorical: bool) -> None:
        self._categorical = categorical
        self._n = 0
        self._low, self._high = float("inf"), -float("inf")
        self._strange = 0.0  # how many of the latest values were outliers
        self._known: set[Value] = set()
        self._found: deque[Outlier] = deque(maxlen=MOST_KEPT)

    def add(self, seq: int, value: Value) -> None:
        """Take the value of the next observation."""
        if self._categorical:
            self._add_category(seq, value)
        else:
            self._add_number(seq, float(value))
        self._n += 1

    def add_all(self, seqs: Sequence[int], values: Sequence[Value | None]) -> None:
        """Take the values of the next observations; None for one that is missing."""
        known = [value for value in values if value is not None]
        if not self._categorical and not self._strange and known:
            low, high = min(map(float, known)), max(map(float, known))
            if self._low <= low and high <= self._high:  # as nearly always: nothing changes
                self._n += len(known)
                return
        for seq, value in zip(seqs, values, strict=True):
            if value is not None:
                self.add(seq, value)

    def _add_category(self, seq: int, value: Value) -> None:
        if value in self._known or len(self._known) >= MOST_KNOWN:
            return
        if self._n >= LEAST:
            self._found.append(Outlier(seq, value))
        self._known.add(value)

    def _add_number(self, seq: int, value: float) -> None:
        margin = BEYOND * (self._high - self._low)
        is_within = self._low - margin <= value <= self._high + margin
        if self._n >= LEAST and not is_within:
            self._found.append(Outlier(seq, value, self._low, self._high))
            self._strange += 1.0
            if self._strange < MOST_STRANGE:
                return
            self._strange = 0.0
        self._strange = max(self._strange - FADING, 0.0)
        self._low, self._high = min(self._low, value), max(self._high, value)

    def forget(self, before: int) -> None:
        """Drop the outliers before a seq."""
        while self._found and self._found[0].seq < before:
            self._found.popleft()

    @property
    def newest(self) -> Sequence[Outlier]:
        """The newest outliers, in order."""
        return [*self._found]
