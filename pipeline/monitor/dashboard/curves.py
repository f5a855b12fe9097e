"""The curves of iPDP: the current one, some earlier ones, and those of the last observations."""

from collections.abc import Sequence

import orjson

from pipeline.monitor.dashboard.stories import fitted
from schemas.change import Curve
from schemas.explanation import Ice

MAX_EARLIER = 12
"""Earlier curves kept of a feature: more of them cannot be told apart on a chart."""

NO_ICE = b"[]"


class CurveStack:
    """Curves of one feature, as JSON, which takes a fifth of the memory of Python's numbers.

    The earlier ones are spread evenly over all there were: whenever too many, every other one is
    dropped.

    Attributes
    ----------
    current
        The newest curve; None if there was no room for it.
    ice
        The curves of the last observations.
    earlier
        Earlier curves, the oldest first.
    """

    def __init__(self) -> None:
        self.current: bytes | None = None
        self.ice: bytes = NO_ICE
        self.earlier: list[bytes] = []
        self._stride = 1
        self._n = 0

    @property
    def size(self) -> int:
        """Bytes of all curves."""
        return len(self.current or b"") + len(self.ice) + sum(map(len, self.earlier))

    def add(self, curve: Curve, ice: Sequence[Ice], *, room: int) -> bool:
        """Take the newest curves, and return whether there was room for them.

        Parameters
        ----------
        curve, ice
            Those of one explanation.
        room
            Bytes that all curves of this feature may take.
        """
        if self.current is not None and (self._n - 1) % self._stride == 0:
            self.earlier.append(self.current)
        self._n += 1
        self.current, self.ice = (fitted(orjson.dumps(each)) for each in (curve, ice))
        has_ice = self.ice != NO_ICE
        self.trim(room)
        return self.current is not None and has_ice == (self.ice != NO_ICE)

    def trim(self, room: int) -> None:
        """Drop what does not fit into so many bytes: earlier curves first, the current one last."""
        while len(self.earlier) > MAX_EARLIER or (self.earlier and self.size > room):
            self.earlier = self.earlier[::2] if len(self.earlier) > 1 else []
            self._stride *= 2
        if self.size > room:
            self.ice = NO_ICE
        if self.size > room:
            self.current = None
