"""Chooses the observations to explain, where not all are."""

import random
from collections.abc import Callable


class OneOf:
    """Chooses one of each k consecutive items at random.

    Smoothed means keep their expectation, even in a periodic stream: every k-th item would always
    meet the same phase.

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
        """Begin a new block of k."""
        self.k, self._place = k, 0

    def takes(self) -> bool:
        """Return whether the next item is taken."""
        if self.k == 1:
            return True
        if self._place == 0:
            self._chosen = self._rng.randrange(self.k)
        is_chosen = self._place == self._chosen
        self._place = (self._place + 1) % self.k
        return is_chosen


class Subsampling:
    """Chooses separately among unlabelled observations, labelled ones, and late labels.

    ``skipped`` counts those not explained so far.
    """

    def __init__(self, every: int, rng_of: Callable[[str], random.Random]) -> None:
        kinds = ((False, True), (True, True), (True, False))
        self._turns = {kind: OneOf(every, rng_of(f"every/{kind[0]}/{kind[1]}")) for kind in kinds}
        self.skipped = 0

    @property
    def every(self) -> int:
        """One of this many observations is explained."""
        return self._turns[True, True].k

    @every.setter
    def every(self, k: int) -> None:
        for turn in self._turns.values():
            turn.begin(k)

    def takes(self, *, labelled: bool, unlabelled: bool) -> bool:
        """Return whether the next observation of a kind is explained."""
        takes = self._turns[labelled, unlabelled].takes()
        self.skipped += not takes
        return takes
