"""Progress of the pipeline: each role's lag, and which observations all roles have processed."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.client import (
    NOT_AUTHORIZED,
    Answer,
    BrokerError,
    TopicPartition,
    ask,
    asking_consumer,
    log_offsets,
    partitions_of,
)
from fluxplain.kafka.timeouts import REQUEST_S
from fluxplain.kafka.topics.asking_thread import AskingThread
from fluxplain.kafka.topics.oldest_messages import OldestMessages

Offsets = Mapping[int, int]
"""Partition → offset."""

EVERY_S = 2.0
"""Seconds between two requests to the broker."""

SETTLED_S = 10.0
"""Seconds without progress after which the log is read, to see whether any message waits."""


class GroupOffsets:
    """The committed offsets of a role, shard or other group, and the log of a topic it reads.

    ``to_open_transactions`` ends the log before the first transaction that is not committed, where
    readers end; else it ends with the newest message.
    """

    def __init__(
        self,
        config: Config,
        replica: Replica | str,
        topic: str,
        *,
        to_open_transactions: bool = True,
    ) -> None:
        self._config = config
        self._topic = config.topic(topic)
        self._partitions = partitions_of(config, self._topic)
        isolation = "read_committed" if to_open_transactions else "read_uncommitted"
        settings = {"isolation.level": isolation}
        self._consumer = asking_consumer(config, config.group(replica), **settings)

    def committed(self) -> Offsets:
        """Return partition → committed offset; 0 without one."""
        return dict.fromkeys(self._partitions, 0) | self.commits()

    def commits(self) -> dict[int, int]:
        """Return partition → committed offset, of the partitions that have one."""
        asked = [confluent_kafka.TopicPartition(self._topic, each) for each in self._partitions]
        answers = self._ask(
            "cannot ask for committed offsets",
            lambda: self._consumer.committed(asked, timeout=REQUEST_S),
        )
        return {tp.partition: tp.offset for tp in answers if tp.offset >= 0}

    def starts(self) -> Offsets:
        """Return partition → oldest offset in the log."""
        return self._log_offsets(OFFSET_BEGINNING)

    def ends(self) -> Offsets:
        """Return partition → offset of the next new message."""
        return self._log_offsets(OFFSET_END)

    def lag(self) -> int:
        """Return the number of messages in the log that are not committed yet."""
        return sum(self._lags(self.committed()).values())

    def progress(self) -> tuple[Offsets, Offsets]:
        """Return partition → committed offset, and partition → messages not committed yet."""
        committed = self.committed()
        return committed, self._lags(committed)

    def _lags(self, committed: Offsets) -> Offsets:
        starts = self.starts()
        # the committed offset may be beyond the end of a topic that was created again
        return {p: max(end - max(committed[p], starts[p]), 0) for p, end in self.ends().items()}

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _log_offsets(self, which: int) -> Offsets:
        return self._ask(
            f"cannot ask for the offsets of {self._topic}",
            lambda: log_offsets(self._consumer, self._topic, self._partitions, which, REQUEST_S),
        )

    def _ask(self, what: str, question: Callable[[], Answer]) -> Answer:
        def refused() -> Answer:
            try:
                return question()
            except KafkaException:
                message = self._consumer.poll(0)  # an ACL's refusal comes as a message
                problem = message.error() if message else None
                if problem and problem.code() in NOT_AUTHORIZED:
                    raise KafkaException(problem) from None
                raise

        return ask(self._config, self._consumer, self._topic, what, refused)


class PipelineProgress:
    """Follows one partition of ``features`` through all roles.

    A role commits only after its outputs have arrived. So once the first role (all its shards) has
    committed offset n, all outputs of the observations below n are in the next role's topic, below
    its current end. Once the next role has committed that end, the same holds for its outputs, and
    so on to the last role.
    """

    def __init__(self, config: Config, partition: int) -> None:
        self._partition = partition
        roles = dict.fromkeys(replica.role for replica in config.replicas())
        self._groups = [
            [
                GroupOffsets(config, replica, config.inputs(role)[0])
                for replica in config.replicas(role)
            ]
            for role in roles
        ]
        self._marks: list[deque[tuple[int, Offsets]]] = [deque() for _ in self._groups[1:]]
        self.taken = 0
        self.through = 0

    def update(self) -> int:
        """Ask the broker; return the offset below which all roles have processed everything."""
        first, *others = self._groups
        reached = min(group.committed()[self._partition] for group in first)
        self.taken = reached
        for marks, groups in zip(self._marks, others, strict=True):
            if not marks or marks[-1][0] < reached:
                marks.append((reached, groups[0].ends()))
            reached = self._passed(marks, [group.committed() for group in groups])
        self.through = max(self.through, reached)
        return self.through

    def end_of_features(self) -> int:
        """Return the offset of the next new observation."""
        return self._groups[0][0].ends()[self._partition]

    def close(self) -> None:
        """Leave the broker."""
        for groups in self._groups:
            for group in groups:
                group.close()

    def _passed(self, marks: deque[tuple[int, Offsets]], committed: Sequence[Offsets]) -> int:
        passed = self.through
        while marks and all(each[p] >= end for each in committed for p, end in marks[0][1].items()):
            passed = marks.popleft()[0]
        return passed


class Backlog(NamedTuple):
    """The unread messages of a role or shard, and since when it has not moved in some partition.

    ``moved_at`` is the oldest time, of the monotonic clock, at which a partition with unread
    messages had none, or the role committed some: at the earliest when somebody began to look.
    ``waits_since`` is when the oldest of the messages began to wait, as far as is known: earlier
    than ``moved_at`` if they were published before somebody began to look.
    """

    lag: int
    moved_at: float
    waits_since: float


class LagMonitor(AskingThread):
    """Asks the broker in its own thread, so that a missing answer does not block a display.

    ``latest`` maps a role or shard to its backlog. It is None before the first answer and during an
    outage; then ``trouble`` has the reason.
    """

    def __init__(self, config: Config) -> None:
        super().__init__("lag", EVERY_S)
        self._config = config
        self._moved: dict[tuple[str, str, int], tuple[int, float]] = {}
        self._looked: dict[tuple[str, str, int], tuple[tuple[int, int] | None, bool]] = {}
        # the committed offset at the first look, and since when its message had waited then
        self._found: dict[tuple[str, str, int], tuple[int, float]] = {}
        self.latest: Mapping[str, Backlog] | None = None
        self.trouble: str | None = None

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self._ask_until_refused()
            except BrokerError as error:
                self.latest, self.trouble = None, str(error)
                self._ended.wait(EVERY_S)

    def _ask_until_refused(self) -> None:
        with ExitStack() as stack:
            groups = {
                str(replica): {
                    topic: stack.enter_context(closing(GroupOffsets(self._config, replica, topic)))
                    for topic in self._config.inputs(replica.role)
                }
                for replica in self._config.replicas()
            }
            oldest = stack.enter_context(closing(OldestMessages(self._config)))
            while not self._ended.is_set():
                self.latest = {
                    name: self._backlog(name, read, oldest) for name, read in groups.items()
                }
                self.trouble = None
                self._ended.wait(EVERY_S)

    def _backlog(
        self, name: str, read: Mapping[str, GroupOffsets], reader: OldestMessages
    ) -> Backlog:
        now, lag, oldest, waits_since = time.monotonic(), 0, math.inf, math.inf
        for topic, each in read.items():
            committed, lags = each.progress()
            self._find(name, topic, committed, lags, reader)
            for partition, unread in lags.items():
                place, offset = (name, topic, partition), committed[partition]
                before, moved_at = self._moved.get(place, (None, now))
                stands = offset, unread
                is_known = self._looked.get(place, (None, False))
                if offset == before and now - moved_at > SETTLED_S and is_known[0] != stands:
                    is_known = stands, self._is_empty(topic, partition, offset)
                    self._looked[place] = is_known
                waiting = 0 if is_known == (stands, True) else unread
                if offset != before or not waiting:
                    moved_at = now
                self._moved[place] = offset, moved_at
                lag += waiting
                if waiting:
                    oldest = min(oldest, moved_at)
                    at_first, since = self._found.get(place, (None, now))
                    waits_since = min(waits_since, since if at_first == offset else moved_at)
        return Backlog(lag, min(oldest, now), min(waits_since, oldest, now))

    def _find(
        self,
        name: str,
        topic: str,
        committed: Offsets,
        lags: Offsets,
        reader: OldestMessages,
    ) -> None:
        """At the first look, read since when messages have waited."""
        full, now = self._config.topic(topic), time.time()
        logs = {
            TopicPartition(full, p): (committed[p], committed[p] + unread)
            for p, unread in lags.items()
            if unread and (name, topic, p) not in self._moved
        }
        for tp, at in (reader.published_at(logs) if logs else {}).items():
            place, offset = (name, topic, tp.partition), committed[tp.partition]
            if at is None:
                self._looked[place] = (offset, lags[tp.partition]), True
            else:
                self._found[place] = offset, time.monotonic() - max(now - at, 0.0)

    def _is_empty(self, topic: str, partition: int, offset: int) -> bool:
        """Return whether no message is there from an offset on: marks of transactions are none."""
        from fluxplain.kafka.faust.peek import first_offset  # noqa: PLC0415  seldom needed

        with suppress(KafkaException):
            name = self._config.topic(topic)
            return first_offset(self._config, name, partition, offset, REQUEST_S) is None
        return False
