"""Keeps the time that a record takes within a budget, by explaining fewer observations.

What a record takes is known to nobody but the worker, and depends on its machine. So the worker
does not act on it by itself: it announces how many observations are to be explained, in a topic
that is joined with them. The model stage takes that as it takes observations, so a new start does
the same.
"""

from dataclasses import dataclass

from pipeline.config import Config
from pipeline.parts import Part

WINDOW = 200
"""Records whose mean time is looked at."""

ROOM = 4.0
"""More is explained again once a record takes less than this part of the budget: twice as many
observations take at most twice as long, and the rest is room for the unlike."""

PATIENCE_S = 30.0
"""After how long what was announced and did not come counts as lost."""

MOST = 10_000


@dataclass(slots=True)
class _Record:
    """What the last records of a partition took."""

    seconds: float = 0.0
    n: int = 0
    announced: int | None = None
    announced_at: float = 0.0


class TimeBudget:
    """Tells how many observations are to be explained.

    Parameters
    ----------
    budget_s
        Seconds that a record may take in the mean.
    least
        ``explain.every`` of the settings: fewer are not left out.

    Examples
    --------
    >>> budget = TimeBudget(0.001, least=1)
    >>> [each for i in range(450) if (each := budget.see(0, 1, seconds=0.003, now=float(i)))]
    [2, 2]
    """

    def __init__(self, budget_s: float, least: int) -> None:
        self._budget_s = budget_s
        self._least = least
        self._partitions: dict[int, _Record] = {}

    def see(self, partition: int, every: int, *, seconds: float, now: float) -> int | None:
        """Take what a record took; return what is to be announced, if anything is.

        Parameters
        ----------
        partition
            Of which stream.
        every
            How many observations it explains one of, at present.
        seconds
            What its last record took.
        now
            Seconds of a clock that only goes forward.
        """
        record = self._partitions.setdefault(partition, _Record())
        if record.announced is not None:
            if record.announced != every and now - record.announced_at < PATIENCE_S:
                return None  # what is measured is of before
            record.announced = None
        record.seconds += seconds
        record.n += 1
        if record.n < WINDOW:
            return None
        mean, record.seconds, record.n = record.seconds / record.n, 0.0, 0
        wanted = every
        if mean > self._budget_s:
            wanted = min(2 * every, MOST)
        elif mean < self._budget_s / ROOM:
            wanted = max(every // 2, self._least)
        if wanted == every:
            return None
        record.announced, record.announced_at = wanted, now
        return wanted


def budget_of(config: Config, part: Part, partition: int) -> TimeBudget | None:
    """Return what keeps the budget of a stream; None if it has none, or another worker keeps it."""
    explain = config.of_stream(partition).explain
    if explain.budget_ms is None or not _announces(part):
        return None
    return TimeBudget(explain.budget_ms / 1000, explain.every)


def outdated(config: Config, part: Part, partition: int, every: int) -> int | None:
    """Return one of how many is to be explained, if fewer still are for a budget that is gone."""
    explain = config.of_stream(partition).explain
    is_gone = explain.budget_ms is None and every != explain.every
    return explain.every if is_gone and config.control.topic and _announces(part) else None


def _announces(part: Part) -> bool:
    # of shards the first one announces for all
    return part.role == "model" and part.shard == 0
