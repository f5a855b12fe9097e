"""Which observations are explained, where not all are."""

import random
from typing import Protocol, runtime_checkable


@runtime_checkable
class Sheds(Protocol):
    """A stage that explains one of some observations."""

    @property
    def every(self) -> int:
        """One of how many is explained."""
        ...


class OneOf:
    """Chooses one of each k in a row, at random.

    So what is smoothed has the same expectation as if all were taken, also in a stream that has a
    period: every k-th would always meet the same phase of it.

    Parameters
    ----------
    k
        From 1 on.
    rng
        Source of its random numbers; of none where k is 1.

    Examples
    --------
    >>> one = OneOf(3, random.Random(1))
    >>> [one.takes() for _ in range(9)]
    [True, False, False, False, False, True, True, False, False]
    """

    def __init__(self, k: int, rng: random.Random) -> None:
        self.k = k
        self._rng = rng
        self._place = self._chosen = 0

    def begin(self, k: int) -> None:
        """Begin a new row, of k."""
        self.k, self._place = k, 0

    def takes(self) -> bool:
        """Return whether the next one is taken."""
        if self.k == 1:
            return True
        if self._place == 0:
            self._chosen = self._rng.randrange(self.k)
        is_chosen = self._place == self._chosen
        self._place = (self._place + 1) % self.k
        return is_chosen
