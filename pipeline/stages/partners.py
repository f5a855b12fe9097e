"""Estimates how strongly a feature interacts with each other feature."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.schemas.evaluation import Evaluation
from fluxplain.schemas.explanation import Interaction
from fluxplain.schemas.methods import Method

MOST = 5
"""Most partners in an explanation."""


class Partners:
    """Smoothed increments of one player by partner; each is 0 for all but one partner.

    Examples
    --------
    >>> partners = Partners(["a", "b", "c"], alphas=[0.1], reach=200)
    >>> partners.update([1, 2, 1], [0.5, 0.0, 1.0])
    >>> partners.strongest(0)
    [Interaction(feature='b', value=0.518..., std_error=None)]
    """

    def __init__(self, names: Sequence[str], alphas: Sequence[float], reach: int | None) -> None:
        self._names = names
        self._means = ExponentialMeans(len(names), alphas, reach=reach)

    def update(self, partners: Sequence[int], increments: Sequence[float]) -> None:
        """Add the partner and the increment of each observation."""
        rows = np.zeros((len(partners), len(self._names)))
        rows[np.arange(len(partners)), partners] = increments
        self._means.update(rows)

    def strongest(self, place: int) -> list[Interaction]:
        """Return the strongest partners with positive values; ``place`` is the smoothing rate's."""
        values = self._means.values[place]
        order = np.argsort(-values, kind="stable")[:MOST].tolist()
        return [
            Interaction(self._names[i], values.item(i), known(self._means.std_error(place, i)))
            for i in order
            if values[i] > 0.0
        ]


def partner_of(run: Evaluation, method: Method, i: int, players: int) -> int:
    """Return the partner in the answer about observation i; raise ``ValueError`` without one."""
    points: Any = run.points.get(method)
    place = points[i][0] if points is not None and points[i] is not None and len(points[i]) else -1
    if isinstance(place, int | float) and place in range(players):
        return int(place)
    raise ValueError("the point of an interaction is not the place of a feature or group")


def known(std_error: float) -> float | None:
    """Return a standard error; None if it is infinite."""
    return std_error if math.isfinite(std_error) else None
