"""A model that learns nothing and costs what a scenario wants."""

import time
from collections.abc import Mapping
from typing import Any

BALLAST: list[bytearray] = []
"""Memory that belongs to no state."""


class Steady:
    """A fixed regressor.

    Parameters
    ----------
    learn_s
        Seconds that each observation takes.
    pickle_s
        Seconds that pickling takes.
    ballast_mb
        Megabytes of the process, besides the state.
    """

    def __init__(self, learn_s: float = 0.0, pickle_s: float = 0.0, ballast_mb: int = 0) -> None:
        self._learn_s, self._pickle_s = learn_s, pickle_s
        if ballast_mb and not BALLAST:
            BALLAST.append(bytearray(b"1") * (ballast_mb * 1_000_000))

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(3.0 * x["a"] - x["b"])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        time.sleep(self._learn_s)

    def __getstate__(self) -> dict[str, Any]:
        time.sleep(self._pickle_s)
        return self.__dict__
