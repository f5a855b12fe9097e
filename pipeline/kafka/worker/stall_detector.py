"""Decides from repeated samples of offsets whether a worker makes progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.worker.partition import PartitionProgress

ASLEEP_S = 20.0
"""Seconds between two samples that show that the process itself was suspended: missing progress is
no stall then."""

LOOKS = 3
"""Consecutive samples that must show a log to be too short: a broker may lag after a failover."""


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """The progress of a worker at the monotonic time ``now``.

    ``ends`` are the ends of the logs, None if the broker does not answer; ``refusal`` is the reason
    if it refuses this worker. ``committed`` are the group's offsets, for a worker without
    partitions. ``is_saving``: the worker waits for outputs, which has its own limit.
    ``is_held_up``: something other than the broker does not answer.
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

    Waiting messages must be taken within ``stall_s`` seconds, and committed within ``stall_s`` plus
    the interval of checkpoints, ``interval_s``.
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

    def see(self, sample: ProgressSample) -> None:
        """Update the timers from one observation of the role."""
        self.broker_answers = sample.ends is not None
        self._see_refusal(sample)
        was_asleep = self._seen_at is not None and sample.now - self._seen_at > ASLEEP_S
        self._seen_at = sample.now
        if was_asleep or sample.ends is None or sample.is_saving or sample.is_held_up:
            # a restart would not help
            self._taking.forget()
            self._committing.forget()
            return
        ends = sample.ends
        self._see_shorter_logs(sample.partitions, ends)
        taken = {p.tp: (p.next_offset, ends.get(p.tp, 0)) for p in sample.partitions}
        waiting = {p.tp for p in sample.partitions if p.waits_for is not None}
        done = {p.tp: (p.committed_offset, p.next_offset) for p in sample.partitions}
        if not sample.partitions:
            # nobody commits the waiting messages, and this worker gets no partition: a lost group
            done = {tp: (offset, ends.get(tp, 0)) for tp, offset in sample.committed.items()}
        self.lag = sum(max(end - offset, 0) for offset, end in (taken or done).values())
        # a restart would not bring a model
        self._taking.see(sample.now, {tp: each for tp, each in taken.items() if tp not in waiting})
        self._committing.see(sample.now, done)

    def shortened(self) -> tuple[PartitionProgress, int] | None:
        """Return a partition whose log ends before the worker's next offset, and that end."""
        seen = self._shorter.values()
        return next(((partition, end) for partition, end, looks in seen if looks >= LOOKS), None)

    def stalled(self) -> str | None:
        """Return a message about the stall; None if there is none."""
        if self._refusal:
            return self._refusal
        for timers, what in ((self._taking, "taken"), (self._committing, "committed")):
            if timers.overdue:
                places = ", ".join(map(str, sorted(timers.overdue)))
                return (
                    f"no message of {places} was {what} for {timers.limit_s:.0f} s, "
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

    def _see_refusal(self, sample: ProgressSample) -> None:
        if sample.refusal is None:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = sample.now
        since = self._refused_since
        overdue = since is not None and sample.now - since >= self._stall_s
        # a restart reads the secrets again
        self._refusal = sample.refusal if overdue else None


class _Timers:
    """Measures for each partition how long an offset has stood below its goal."""

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
