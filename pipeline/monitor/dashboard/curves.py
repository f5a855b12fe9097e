"""The curves of iPDP: the current one, some earlier ones, and those of the last observations."""

from typing import Any

import orjson

from pipeline.monitor.dashboard.stories import fitted
from schemas import Explanation

MAX_EARLIER = 12
"""Earlier curves kept of a feature: more of them cannot be told apart on a chart."""


class CurveStack:
    """Curves of one feature, as JSON, which takes a fifth of the memory of Python's numbers.

    The earlier ones are spread evenly over all there were: whenever too many, every other one is
    dropped.
    """

    def __init__(self) -> None:
        self.current: bytes = b"null"
        self.ice: bytes = b"[]"
        self._kept: list[bytes] = []
        self._stride = 1
        self._n = 0

    @property
    def size(self) -> int:
        """Bytes of one record's curves."""
        return len(self.current) + len(self.ice)

    @property
    def earlier(self) -> list[bytes]:
        """Earlier curves, the oldest first; not the current one."""
        return [curve for curve in self._kept if curve is not self.current]

    def add(self, explanation: Explanation, *, room: int) -> None:
        """Take the newest curves.

        Parameters
        ----------
        explanation
            Of iPDP.
        room
            Bytes that all curves of this feature may take.
        """
        self.current = fitted(orjson.dumps(_curve(explanation)))
        self.ice = fitted(orjson.dumps(explanation.ice or []))
        if self._n % self._stride == 0:
            self._kept.append(self.current)
        self._n += 1
        most = min(MAX_EARLIER, max((room - self.size) // max(len(self.current), 1), 1))
        while len(self._kept) > most:
            self._kept = self._kept[::2] if most > 1 else self._kept[-1:]
            self._stride *= 2


def _curve(explanation: Explanation) -> dict[str, Any]:
    return {
        "seq": explanation.seq,
        "grid": explanation.grid,
        "effect": explanation.effect,
        "classes": explanation.classes,
        "second_grid": explanation.second_grid,
    }
