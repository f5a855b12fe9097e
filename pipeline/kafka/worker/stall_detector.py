"""Decides from offsets, seen again and again, whether a worker makes progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.worker.partition import PartitionProgress

ASLEEP_S = 20.0
"""Seconds between two looks from which on the process itself must have stood still: what it did not
do meanwhile is no stall, and it may do it now."""

LOOKS = 3
"""How often in a row a log must be seen to be too short: brokers that take over from another may
be behind for a moment."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A role at one moment, ``now`` of a monotonic clock.

    ``ends`` are the ends of the logs, None if the broker does not answer, and ``refusal`` why it
    does not let this worker in. ``committed`` is what the group has committed, needed of a worker
    without partitions. ``is_saving`` says that outputs are waited for, which has a limit of its
    own, ``is_held_up`` that something other than the broker does not answer.
    """

    now: float
    partitions: Sequence[PartitionProgress] = ()
    ends: Mapping[TopicPartition, int] | None = None
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    refusal: str | None = None
    is_saving: bool = False
    is_held_up: bool = False


class StallDetector:
    """Measures how long nothing has moved although messages wait.

    Messages that wait must move on within ``stall_s`` seconds; a commit may take as much longer as
    the interval between two checkpoints, ``interval_s``.
    """

    def __init__(self, stall_s: float, interval_s: float) -> None:
        self._taking = _Timers(stall_s)
        self._committing = _Timers(stall_s + interval_s)
        self._stall_s = stall_s
        self._refusal: str | None = None
        self._refused_since: float | None = None
        self._shorter: dict[TopicPartition, tuple[PartitionProgress, int, int]] = {}
        self._seen_at: float | None = None
        self.lag = 0
        self.broker_answers = False

    def see(self, sight: Sight) -> None:
        """Update the timers from one observation of the role."""
        self.broker_answers = sight.ends is not None
        self._see_refusal(sight)
        was_asleep = self._seen_at is not None and sight.now - self._seen_at > ASLEEP_S
        self._seen_at = sight.now
        if was_asleep or sight.ends is None or sight.is_saving or sight.is_held_up:
            # what is away comes back; a new start would not make that sooner
            self._taking.forget()
            self._committing.forget()
            return
        ends = sight.ends
        self._see_shorter_logs(sight.partitions, ends)
        taken = {p.tp: (p.next_offset, ends.get(p.tp, 0)) for p in sight.partitions}
        waiting = {p.tp for p in sight.partitions if p.waits_for is not None}
        done = {p.tp: (p.committed_offset, p.next_offset) for p in sight.partitions}
        if not sight.partitions:
            # nobody commits what waits, and it is not given to this worker: it lost its group
            done = {tp: (offset, ends.get(tp, 0)) for tp, offset in sight.committed.items()}
        self.lag = sum(max(end - offset, 0) for offset, end in (taken or done).values())
        # a new start would not bring a model
        self._taking.see(sight.now, {tp: each for tp, each in taken.items() if tp not in waiting})
        self._committing.see(sight.now, done)

    def shortened(self) -> tuple[PartitionProgress, int] | None:
        """Return a partition of which the worker has taken more than there is, and its end."""
        seen = self._shorter.values()
        return next(((partition, end) for partition, end, looks in seen if looks >= LOOKS), None)

    def stalled(self) -> str | None:
        """Return what does not move, for people; None if all is well."""
        if self._refusal:
            return self._refusal
        for timers, what in ((self._taking, "taken"), (self._committing, "committed")):
            if timers.overdue:
                places = ", ".join(map(str, sorted(timers.overdue)))
                return (
                    f"nothing of {places} was {what} for {timers.limit_s:.0f} s, "
                    "although messages wait and the broker answers"
                )
        return None

    def _see_shorter_logs(
        self, partitions: Sequence[PartitionProgress], ends: Mapping[TopicPartition, int]
    ) -> None:
        before, self._shorter = self._shorter, {}
        for each in partitions:
            end = ends.get(each.tp, each.next_offset)
            if end < each.next_offset:
                looks = before[each.tp][2] if each.tp in before else 0
                self._shorter[each.tp] = (each, end, looks + 1)

    def _see_refusal(self, sight: Sight) -> None:
        if sight.refusal is None:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = sight.now
        since = self._refused_since
        overdue = since is not None and sight.now - since >= self._stall_s
        # a new start reads the secrets again; if it is refused too, it says so
        self._refusal = sight.refusal if overdue else None


class _Timers:
    """For each partition, since when an offset stands below its goal."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.overdue: set[TopicPartition] = set()
        self._since: dict[TopicPartition, tuple[int, float]] = {}

    def see(self, now: float, partitions: Mapping[TopicPartition, tuple[int, int]]) -> None:
        waiting = {tp: offset for tp, (offset, goal) in partitions.items() if offset < goal}
        self._since = {
            tp: self._since[tp] if self._since.get(tp, (None,))[0] == offset else (offset, now)
            for tp, offset in waiting.items()
        }
        self.overdue = {tp for tp, (_, since) in self._since.items() if now - since >= self.limit_s}

    def forget(self) -> None:
        self._since = {}
        self.overdue = set()
