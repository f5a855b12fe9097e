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
    ``is_held_up``: something other than the broker does not answer. ``interval_s`` is the time
    between two checkpoints.
    """

    now: float
    partitions: Sequence[PartitionProgress] = ()
    ends: Mapping[TopicPartition, int] | None = None
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    refusal: str | None = None
    is_saving: bool = False
    is_held_up: bool = False
    interval_s: float = 0.0


class StallDetector:
    """Measures how long nothing has moved although messages wait.

    Waiting messages must be taken within ``stall_s`` seconds, and committed within ``stall_s`` plus
    the interval of checkpoints. ``shortened`` is a partition whose log ends before the worker's
    next offset, with that end.
    """

    def __init__(self, stall_s: float) -> None:
        self._taking = _Timers(stall_s)
        self._committing = _Timers(stall_s)
        self._refused = _Timers(stall_s)
        self._refusal: str | None = None
        self._too_short: dict[TopicPartition, int] = {}
        self._seen_at: float | None = None
        self.shortened: tuple[PartitionProgress, int] | None = None
        self.lag = 0
        self.broker_answers = False

    def see(self, sample: ProgressSample) -> None:
        """Update the timers from one observation of the role."""
        self.broker_answers = sample.ends is not None
        self._committing.limit_s = self._taking.limit_s + sample.interval_s
        self._refused.see(sample.now, {} if sample.refusal is None else {None: 0})
        # a restart reads the secrets again
        self._refusal = sample.refusal if self._refused.overdue else None
        was_asleep = self._seen_at is not None and sample.now - self._seen_at > ASLEEP_S
        self._seen_at = sample.now
        if was_asleep or sample.ends is None or sample.is_saving or sample.is_held_up:
            # a restart would not help
            self._taking.see(sample.now, {})
            self._committing.see(sample.now, {})
        else:
            self._see_offsets(sample, sample.ends)

    def stalled(self) -> str | None:
        """Return a message about the stall; None if there is none."""
        if self._refusal:
            return self._refusal
        for timers, what in ((self._taking, "taken"), (self._committing, "committed")):
            if timers.overdue:
                places = ", ".join(sorted(map(str, timers.overdue)))
                return (
                    f"no message of {places} was {what} for {timers.limit_s:.0f} s, "
                    "although messages wait and the broker answers"
                )
        return None

    def _see_offsets(self, sample: ProgressSample, ends: Mapping[TopicPartition, int]) -> None:
        short = {
            p.tp: p for p in sample.partitions if ends.get(p.tp, p.next_offset) < p.next_offset
        }
        self._too_short = {tp: self._too_short.get(tp, 0) + 1 for tp in short}
        certain = [(p, ends[tp]) for tp, p in short.items() if self._too_short[tp] >= LOOKS]
        self.shortened = certain[0] if certain else None
        taken = {p.tp: (p.next_offset, ends.get(p.tp, 0)) for p in sample.partitions}
        done = {p.tp: (p.committed_offset, p.next_offset) for p in sample.partitions}
        if not sample.partitions:
            # nobody commits the waiting messages, and this worker gets no partition: a lost group
            done = {tp: (offset, ends.get(tp, 0)) for tp, offset in sample.committed.items()}
        self.lag = sum(max(end - offset, 0) for offset, end in (taken or done).values())
        # a restart would not bring a model
        bound = [p.tp for p in sample.partitions if p.waits_for is None]
        self._taking.see(sample.now, _below({tp: taken[tp] for tp in bound}))
        self._committing.see(sample.now, _below(done))


def _below(partitions: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
    """Return the offsets that are below their goals."""
    return {tp: offset for tp, (offset, goal) in partitions.items() if offset < goal}


class _Timers:
    """Measures how long values have stayed the same, and which of them for too long."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.overdue: set[TopicPartition | None] = set()
        self._since: dict[TopicPartition | None, tuple[int, float]] = {}

    def see(self, now: float, values: Mapping[TopicPartition, int] | Mapping[None, int]) -> None:
        self._since = {
            key: self._since[key] if self._since.get(key, (None,))[0] == value else (value, now)
            for key, value in values.items()
        }
        self.overdue = {key for key, (_, at) in self._since.items() if now - at >= self.limit_s}
