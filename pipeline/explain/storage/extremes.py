"""The range of recent values."""

from collections import deque

from fluxplain.explain.parameter_checks import check_size


class RollingExtremes:
    """The smallest and the largest of the last values of one feature.

    A value that is older and smaller than another can never be the largest again, so only a falling
    sequence is kept, and a rising one for the smallest. An update takes constant time on average.

    Parameters
    ----------
    size
        Number of values in the window, at least 1. Worst case: twice as many are kept.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 2.

    Examples
    --------
    >>> extremes = RollingExtremes(3)
    >>> for value in (9.0, 5.0, 1.0, 4.0, 2.0):
    ...     extremes.update(value)
    >>> extremes.low, extremes.high
    (1.0, 4.0)
    """

    def __init__(self, size: int) -> None:
        self.size = check_size(size)
        self._seen = 0
        self._falling: deque[tuple[int, float]] = deque()  # (time, value)
        self._rising: deque[tuple[int, float]] = deque()

    def __len__(self) -> int:
        """Return the number of values in the window, including those that are not kept."""
        return min(self._seen, self.size)

    @property
    def low(self) -> float:
        """The smallest value in the window; ``ValueError`` if there is none."""
        return self._first(self._rising)

    @property
    def high(self) -> float:
        """The largest value in the window; ``ValueError`` if there is none."""
        return self._first(self._falling)

    def update(self, value: float) -> None:
        """Take a value into the window."""
        while self._falling and self._falling[-1][1] <= value:
            self._falling.pop()
        while self._rising and self._rising[-1][1] >= value:
            self._rising.pop()
        for queue in (self._falling, self._rising):
            queue.append((self._seen, value))
            if queue[0][0] <= self._seen - self.size:
                queue.popleft()
        self._seen += 1

    def _first(self, queue: deque[tuple[int, float]]) -> float:
        if not queue:
            raise ValueError("no value is stored yet")
        return queue[0][1]
