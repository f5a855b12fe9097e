"""Keeps observations waiting until later ones no longer resemble them."""

import zlib
from collections import deque
from collections.abc import Iterable, Iterator

from fluxplain.evaluate import Observation, Observed, Value
from fluxplain.evaluate.encoding import EXACT, Floats, columns_of
from fluxplain.explain.storage.autocorrelation import Autocorrelations
from fluxplain.explain.storage.reservoirs import Reservoir

WAIT = 8.0
"""How many times the sum of the autocorrelations an observation waits.

The sum is often estimated too small. If autocorrelations fall exponentially, they fall below a
thousandth meanwhile.
"""

LONGEST, MOST = 4, 2_000
"""The longest wait, as a multiple of the span, and in observations."""


def longest_wait(span: int) -> int:
    """Return how many observations wait at most, for a reservoir of this mean age."""
    return min(LONGEST * span, MOST)


class Delay:
    """A queue whose length grows with the autocorrelation of the features.

    Where records resemble those before, a replacement from a recent record is nearly the value
    itself, and importances would be too small: by half for values of which neighbours have the
    correlation 0.99. Independent records do not wait.

    ``span`` is the mean age of the observations of the reservoir behind the queue. For each of the
    ``features``, the sum of the autocorrelations over lags of about this span is estimated; the
    largest decides how long observations wait. At most ``4 · span`` of them do, and at most 2,000.
    While the queue grows, every second observation leaves it, so that the reservoir is renewed.

    The variance of a mean of stored observations, whose mean age is ``span``, is about
    ``1 + correlation`` times that of as many independent ones.

    Examples
    --------
    >>> import math
    >>> from fluxplain.evaluate import Encoding
    >>> delay, encoding = Delay(("a",), span=50), Encoding()
    >>> rows = ({"a": math.sin(t / 500)} for t in range(1000))
    >>> left = [x["a"] for row in rows for x in delay.through(encoding.observe(row))]
    >>> len(left), len(delay)
    (800, 200)
    """

    def __init__(self, features: tuple[str, ...], span: int) -> None:
        self._features = features
        self._autocorrelations = Autocorrelations(len(features), span)
        self._longest = longest_wait(span)
        self._waiting: deque[Observation] = deque()
        self._is_even = False

    def __len__(self) -> int:
        """Return how many observations wait."""
        return len(self._waiting)

    @property
    def correlation(self) -> float:
        """The mean of the features' sums."""
        return self._autocorrelations.mean

    def through(self, observed: Observed, *, at_once: bool = False) -> Iterable[Observation]:
        """Take the next observation; return those that need not wait any longer, oldest first.

        With ``at_once`` it need not wait: as long as the reservoir is not full, nothing may.
        """
        known = self._autocorrelations
        known.update(self._values(observed))
        wait = min(self._longest, int(WAIT * known.largest))
        if at_once or (not wait and not self._waiting):
            return (observed.x,)
        self._waiting.append(dict(observed.x))
        self._is_even = not self._is_even
        leaving = max(len(self._waiting) - wait, int(self._is_even))
        return [self._waiting.popleft() for _ in range(leaving)]

    def _values(self, observed: Observed) -> Floats:
        plain = observed.encoding.plain(observed, self._features)
        if plain is not None:
            return plain
        values: Floats = observed.numbers[columns_of(observed.features, self._features)]
        for place, feature in enumerate(self._features):
            if observed.encoding.is_categorical(feature):
                # its code may be another one after a restart
                values[place] = as_number(observed.x[feature])
        return values


def entering(delay: Delay, reservoir: Reservoir, observed: Observed) -> Iterator[Observation]:
    """Yield the observations that need not wait any longer, each before it enters the reservoir.

    None waits as long as the reservoir is not full.
    """
    is_filling = len(reservoir.rows) < reservoir.size
    for x in delay.through(observed, at_once=is_filling):
        yield x
        reservoir.update(observed if x is observed.x else observed.encoding.observe(x))


def as_number(value: Value) -> float:
    """Return a number that is the same in every process; of a category an arbitrary one."""
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < EXACT):
        return float(value)
    return zlib.crc32(str(value).encode(errors="surrogatepass")) / 2.0**32
