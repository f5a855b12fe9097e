"""Where a change is expected: since the loss began to change."""

from fluxplain.drift.windows import Windows

LONGER = 2
"""A change is expected until so many times as many numbers have come as when the loss alarmed."""


class Expectation:
    """How many of the newest numbers came since the loss began to change, for a while.

    Examples
    --------
    >>> windows, expectation = Windows(), Expectation()
    >>> lengths = []
    >>> for seq in range(100):
    ...     windows.add(seq, 0.0, loss=None)
    ...     lengths.append(expectation.update(None if seq < 50 else 40, windows))
    >>> lengths[49], lengths[50], lengths[60], lengths[61], lengths[62]
    (0, 11, 21, 22, 0)
    """

    def __init__(self) -> None:
        self._began: int | None = None
        self._length, self._longest = 0, 0

    def update(self, began: int | None, windows: Windows) -> int:
        """Take the seq at which the loss began to change, after the next number was added.

        Returns
        -------
        length
            Within so many of the newest numbers a change is expected, 0 if none is.
        """
        if began is not None and began != self._began:
            self._began, self._length = began, windows.count_since(began)
            self._longest = LONGER * self._length
        elif self._length:
            self._length = self._length + 1 if self._length < self._longest else 0
        return self._length
