"""A histogram of all values of a feature of known cardinality."""

import random
from collections.abc import Sequence

from fluxplain.evaluate import Value


class Histogram:
    """Counts of a feature's values: a uniform reservoir without a limit.

    Parameters
    ----------
    values
        The values that the feature may have, each once; at least one.
    rng
        Source of random numbers.

    Raises
    ------
    ValueError
        If there is no value, or one is named twice.

    References
    ----------
    iPFI, Section 3.2, uniform sampling: histograms for features of known cardinality.

    Examples
    --------
    >>> histogram = Histogram(["u", "v", "w"], random.Random(1))
    >>> for value in ("u", "v", "u"):
    ...     histogram.update(value)
    >>> histogram.counts
    {'u': 2, 'v': 1, 'w': 0}
    >>> set(histogram.draws(20)) == {"u", "v"}
    True
    """

    def __init__(self, values: Sequence[Value], rng: random.Random) -> None:
        self._counts = dict.fromkeys(values, 0)
        if not values or len(self._counts) < len(values):
            raise ValueError(f"values is {values!r}, but must name each value once, at least one")
        self._rng = rng

    def __len__(self) -> int:
        """Return the number of different values seen."""
        return sum(count > 0 for count in self._counts.values())

    @property
    def counts(self) -> dict[Value, int]:
        """Value → count."""
        return dict(self._counts)

    def update(self, value: Value) -> None:
        """Count a value, or raise ``ValueError`` if it is not one of ``values``."""
        if value not in self._counts:
            raise ValueError(f"{value!r} is not one of the values {list(self._counts)!r}")
        self._counts[value] += 1

    def draws(self, n: int) -> list[Value]:
        """Return ``n`` values, each observation so far being equally likely each time.

        Raises
        ------
        ValueError
            If no value was seen yet.
        """
        if not len(self):
            raise ValueError("no value is stored yet")
        return self._rng.choices(list(self._counts), list(self._counts.values()), k=n)
