"""Tells from offsets, seen again and again, whether a worker goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.kafka.client import Place
from pipeline.kafka.worker import Standing
from schemas import stream_name

ASLEEP_S = 20.0
"""Seconds between two looks from which on the process itself must have stood still: what it did not
do meanwhile is no stall, and it may do it now."""

LOOKS = 3
"""How often in a row a log must be seen to be too short: brokers that take over from another may
be behind for a moment."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of a role at one moment.

    Attributes
    ----------
    now
        Seconds, of any clock that only goes forward.
    standings
        This worker's partitions.
    ends
        Place → offset of the next message to come; None if the broker does not answer.
    committed
        Place → what the group has committed; only needed of a worker without partitions.
    refusal
        Why the broker does not let this worker in, if that is why it does not answer.
    is_saving
        Whether the worker waits for its outputs to be acknowledged; that has a limit of its own.
    is_waiting
        Whether it waits for something else than the broker that does not answer.
    """

    now: float
    standings: Sequence[Standing] = ()
    ends: Mapping[Place, int] | None = None
    committed: Mapping[Place, int] = field(default_factory=dict)
    refusal: str | None = None
    is_saving: bool = False
    is_waiting: bool = False


class Progress:
    """Tells how long nothing has moved although something waits.

    Parameters
    ----------
    stall_s
        Seconds after which messages that wait must have moved on.
    interval_s
        Seconds between two checkpoints: a commit may take that much longer.
    """

    def __init__(self, stall_s: float, interval_s: float) -> None:
        self._taking = _Timers(stall_s)
        self._committing = _Timers(stall_s + interval_s)
        self._stall_s = stall_s
        self._refusal: str | None = None
        self._refused_since: float | None = None
        self._shorter: dict[Place, tuple[Standing, int, int]] = {}
        self._seen_at: float | None = None
        self.lag = 0
        self.broker_answers = False

    def see(self, sight: Sight) -> None:
        """Take what is seen now."""
        self.broker_answers = sight.ends is not None
        self._see_refusal(sight)
        was_asleep = self._seen_at is not None and sight.now - self._seen_at > ASLEEP_S
        self._seen_at = sight.now
        if was_asleep or sight.ends is None or sight.is_saving or sight.is_waiting:
            # what is away comes back; a new start would not make that sooner
            self._taking.forget()
            self._committing.forget()
            return
        ends = sight.ends
        self._see_shorter_logs(sight)
        taken = {s.place: (s.next_offset, ends.get(s.place, 0)) for s in sight.standings}
        waiting = {s.place for s in sight.standings if s.waits_for is not None}
        done = {s.place: (s.committed_offset, s.next_offset) for s in sight.standings}
        if not sight.standings:
            # nobody commits what waits, and it is not given to this worker: it lost its group
            done = {p: (offset, ends.get(p, 0)) for p, offset in sight.committed.items()}
        self.lag = sum(max(end - offset, 0) for offset, end in (taken or done).values())
        # a new start would not bring a model
        self._taking.see(sight.now, {p: each for p, each in taken.items() if p not in waiting})
        self._committing.see(sight.now, done)

    def shortened(self) -> tuple[Standing, int] | None:
        """Return a partition of which the worker has taken more than there is, and its end."""
        return next(
            ((standing, end) for standing, end, looks in self._shorter.values() if looks >= LOOKS),
            None,
        )

    def _see_shorter_logs(self, sight: Sight) -> None:
        before = self._shorter
        self._shorter = {}
        for standing in sight.standings:
            end = (sight.ends or {}).get(standing.place, standing.next_offset)
            if end < standing.next_offset:
                _, _, looks = before.get(standing.place, (standing, end, 0))
                self._shorter[standing.place] = (standing, end, looks + 1)

    def _see_refusal(self, sight: Sight) -> None:
        if sight.refusal is None:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = sight.now
        since = self._refused_since
        overdue = since is not None and sight.now - since >= self._stall_s
        # a new start reads secrets anew; if it is refused too, it says so
        self._refusal = sight.refusal if overdue else None

    def stalled(self) -> str | None:
        """Return what does not move, for people; None if all is well."""
        if self._refusal:
            return self._refusal
        for timers, what in ((self._taking, "taken"), (self._committing, "committed")):
            if timers.overdue:
                places = ", ".join(stream_name(*place) for place in sorted(timers.overdue))
                return (
                    f"nothing of {places} was {what} for {timers.limit_s:.0f} s, "
                    "although messages wait and the broker answers"
                )
        return None


class _Timers:
    """For each partition, since when an offset stands below its goal."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.overdue: set[Place] = set()
        self._since: dict[Place, tuple[int, float]] = {}

    def see(self, now: float, partitions: Mapping[Place, tuple[int, int]]) -> None:
        waiting = {p: offset for p, (offset, goal) in partitions.items() if offset < goal}
        self._since = {
            p: self._since[p] if self._since.get(p, (None,))[0] == offset else (offset, now)
            for p, offset in waiting.items()
        }
        self.overdue = {p for p, (_, since) in self._since.items() if now - since >= self.limit_s}

    def forget(self) -> None:
        self._since = {}
        self.overdue = set()
