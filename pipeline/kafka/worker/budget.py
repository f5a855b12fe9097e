"""Keeps the time per record within a budget by explaining fewer observations.

The time depends on the machine, so the worker does not apply its decision directly. It announces
the new ``explain.every`` in a topic that is joined with the observations. The model stage reads it
at its offset, so that a replay gives the same results.
"""

from typing import Self

from fluxplain.config import Config
from fluxplain.config.replica import Replica

WINDOW = 200
"""Number of records whose mean time is compared with the budget."""

ROOM = 4.0
"""Fraction 1 / ROOM of the budget below which more is explained again: twice as many observations
take at most twice as long, and the rest is a margin for varying records."""

PATIENCE_S = 30.0
"""Seconds after which an announcement that was not read back counts as lost."""

MOST = 10_000
"""Largest value of `explain.every` that is announced."""


class StreamBudget:
    """Decides how many observations of one stream are explained.

    ``budget_s`` limits the mean time of a record; None if the budget was removed and only an
    earlier announcement must be reverted. ``least`` is ``explain.every`` of the settings, the lower
    limit.

    Examples
    --------
    >>> budget = StreamBudget(0.001, least=1)
    >>> [each for i in range(450) if (each := budget.see(1, seconds=0.003, now=float(i)))]
    [2, 2]
    """

    def __init__(self, budget_s: float | None, least: int) -> None:
        self._budget_s = budget_s
        self._least = least
        self._seconds = 0.0
        self._n = 0
        self._announced: int | None = None
        self._announced_at = 0.0

    @classmethod
    def of(cls, config: Config, replica: Replica, partition: int) -> Self | None:
        """Return the budget of a stream; None if this worker makes no announcements about it."""
        # the first shard announces for all
        if replica.role != "model" or replica.shard != 0 or not config.control.topic:
            return None
        explain = config.of_stream(partition).explain
        budget_s = None if explain.budget_ms is None else explain.budget_ms / 1000
        return cls(budget_s, explain.every)

    def see(self, every: int, *, seconds: float, now: float) -> int | None:
        """Count one record; return the ``explain.every`` to announce, or None.

        ``every`` is the stage's current value, ``now`` a monotonic time in seconds.
        """
        if self._budget_s is None:
            return self._taken_back(every)
        if self._announced is not None:
            if self._announced != every and now - self._announced_at < PATIENCE_S:
                return None  # the measured records precede the announcement
            self._announced = None
        self._seconds += seconds
        self._n += 1
        if self._n < WINDOW:
            return None
        mean, self._seconds, self._n = self._seconds / self._n, 0.0, 0
        wanted = every
        if mean > self._budget_s:
            wanted = min(2 * every, MOST)
        elif mean < self._budget_s / ROOM:
            wanted = max(every // 2, self._least)
        if wanted == every:
            return None
        self._announced, self._announced_at = wanted, now
        return wanted

    def _taken_back(self, every: int) -> int | None:
        """Return the setting, once, if a removed budget had announced another value."""
        is_first, self._announced = self._announced is None, self._least
        return self._least if is_first and every != self._least else None
