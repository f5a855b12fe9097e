"""How workers ended, and which of that must not be."""

import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fluxplain.cli.supervisor import describe_status
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_NOT_YET

OWN = {EXIT_FAILED, EXIT_NOT_YET}
"""With what a worker may end by itself: the next start repeats what was not committed."""

IN_ORDER = {0, -signal.SIGTERM}
"""With what a worker that was told to stop may end at any time. The signal itself ends only one
that is still starting: it is caught before the group is joined, so nothing was taken yet."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A worker that was told to stop: its exit status, and whether a broker was away then.

    A broker that has not caught up yet is away too.
    """

    status: int
    outage: bool = False

    @property
    def is_defect(self) -> bool:
        """Whether it should have ended otherwise.

        Without a broker outputs may not be acknowledged in the time that stopping may take, or a
        start finds nobody: then it may give up, and nothing is lost. At all other times it has
        promised to commit all that it did, however its group is being dealt anew.
        """
        return self.status not in IN_ORDER | (OWN if self.outage else set())


@dataclass(frozen=True, slots=True)
class Exits:
    """The ends of all workers of a run.

    `deaths` are (name, exit status) of those that ended without being told to; `killed` the names
    of those that the run killed, once for each time; `removed` and `stopped` those that were told
    to stop by the schedule, and at the end.
    """

    deaths: Sequence[tuple[str, int]]
    killed: Sequence[str]
    removed: Sequence[Stop]
    stopped: Sequence[Stop]

    def by_themselves(self) -> Counter[int]:
        """Return exit status → how many ended with it, and not because the run killed them."""
        ours = Counter((name, -int(signal.SIGKILL)) for name in self.killed)
        rest = Counter(self.deaths) - ours
        return Counter(status for _, status in rest.elements())

    def problems(self) -> list[str]:
        """Return what must not be, a few words each; nothing if all is well."""
        died = {status: n for status, n in self.by_themselves().items() if status not in OWN}
        stops = (*self.removed, *self.stopped)
        stopped = Counter(stop.status for stop in stops if stop.is_defect)
        return [
            *([f"workers died: {_statuses(died)}"] if died else []),
            *([f"workers did not stop in good order: {_statuses(stopped)}"] if stopped else []),
        ]

    def numbers(self) -> dict[str, object]:
        died = self.by_themselves()
        own = ", ".join(f"{status}: {died[status]}" for status in sorted(OWN))
        return {
            "workers that ended by themselves": f"{died.total()} (status {own})",
            "removed with another status than 0": _other_than_0(self.removed),
            "stopped at the end with another status than 0": _other_than_0(self.stopped),
        }


def _other_than_0(stops: Sequence[Stop]) -> str:
    others = [stop for stop in stops if stop.status]
    during = Counter(stop.status for stop in others if stop.outage)
    apart = Counter(stop.status for stop in others if not stop.outage)
    said = [
        *([f"{_statuses(apart)} with all brokers there"] if apart else []),
        *([f"{_statuses(during)} with a broker away"] if during else []),
    ]
    return f"{len(others)} ({'; '.join(said)})" if others else "0"


def _statuses(statuses: dict[int, int]) -> str:
    return ", ".join(f"{n} by {describe_status(status)}" for status, n in sorted(statuses.items()))
