"""Keeps the time that a record takes within a budget, by explaining fewer observations.

Only the worker knows what a record takes, and that depends on its machine. So the worker does not
act on it alone: it announces how many observations to explain, in a topic that is joined with them.
The model stage takes that as it takes observations, so a new start does the same.
"""

from typing import Self

from fluxplain.config import Config
from fluxplain.config.replica import Replica

WINDOW = 200
"""Records whose mean time is compared with the budget."""

ROOM = 4.0
"""More is explained again once a record takes less than this part of the budget: twice as many
observations take at most twice as long, and the rest is room for the unlike."""

PATIENCE_S = 30.0
"""Seconds after which an announcement that did not come counts as lost."""

MOST = 10_000
"""Largest value of `explain.every` that is announced."""


class StreamBudget:
    """Decides how many observations of one stream are to be explained.

    ``budget_s`` is what a record may take in the mean; None if the stream has no budget any more,
    and only an earlier announcement must be taken back. ``least`` is ``explain.every`` of the
    settings: fewer are not left out.

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
        """Return the budget of a stream; None if this worker announces nothing about it."""
        # of shards the first one announces for all
        if replica.role != "model" or replica.shard != 0 or not config.control.topic:
            return None
        explain = config.of_stream(partition).explain
        budget_s = None if explain.budget_ms is None else explain.budget_ms / 1000
        return cls(budget_s, explain.every)

    def see(self, every: int, *, seconds: float, now: float) -> int | None:
        """Count one record; return the ``explain.every`` to announce, or None.

        ``every`` is what the stage does at present, ``now`` the seconds of a monotonic clock.
        """
        if self._budget_s is None:
            return self._taken_back(every)
        if self._announced is not None:
            if self._announced != every and now - self._announced_at < PATIENCE_S:
                return None  # what is measured is of before
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
        """Return the setting, once, if a budget that is gone asked for something else."""
        is_first, self._announced = self._announced is None, self._least
        return self._least if is_first and every != self._least else None
