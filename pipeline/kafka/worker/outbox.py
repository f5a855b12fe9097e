"""Sends a worker's records: batched while there is more to read, otherwise at once."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from fluxplain.config import Config
from fluxplain.kafka.ownership.writers import OWN_TOPICS
from fluxplain.kafka.registry.codec import Encoder
from fluxplain.kafka.timeouts import REQUEST_S
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.schemas import (
    PUBLISHED,
    Control,
    DeadLetter,
    Evaluation,
    Explanation,
    Record,
    parse_stream,
)
from fluxplain.stages import Message
from fluxplain.stages.evaluated import Evaluated, evaluations
from fluxplain.stages.join_stage import PassedOn
from fluxplain.stages.trace import trace_of

log = logging.getLogger("fluxplain.worker")

RUN_LENGTH = 64
"""Most observations in one message of evaluations: enough for a small overhead per message."""

LINGER_S = 0.02
"""Longest wait of a record for others, in seconds; without more to read it does not wait."""

RUN_LINGER_S = 0.2
"""Longest wait of evaluations for those of further observations, likewise. In a backlog they are
late anyway, and longer runs leave more CPU to the pipeline."""

PACE_S = 0.01
"""Shortest time between two sendings of evaluations, in seconds: those of the observations in
between share a message for each feature, which costs the explainer little more than a single one's.
"""

MAX_GATHERED = 1_000
"""Largest number of records other than evaluations that wait for others."""

RUN_BYTES = 400_000
"""Largest message of evaluations, in bytes; well below the broker's limit of 1 MB."""

Headers = Mapping[str, bytes]

NO_HEADERS: Headers = {}

MAX_WAITING = 10_000
"""Largest number of unacknowledged messages: far below librdkafka's queue, since a worker blocked
by a full queue cannot handle a rebalance or SIGTERM."""

WARN_AGAIN_S = 60.0
"""Seconds between two warnings about dead letters: a changed producer can make every record one."""

LONGEST_REASON = 300
"""Longest reason in such a warning, in characters."""


class Sender(Protocol):
    """What an outbox needs of a producer; see :class:`fluxplain.kafka.producer.RecordProducer`."""

    @property
    def waiting(self) -> int:
        """Number of unacknowledged messages."""
        ...

    @property
    def obstacle(self) -> str | None:
        """Why messages have waited long, or None."""
        ...

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        *,
        headers: Headers | None = None,
    ) -> None:
        """Queue one message."""
        ...

    def serve(self) -> None:
        """Process delivery reports."""
        ...

    def partitions(self, topic: str, *, beyond: int = 0, timeout_s: float = REQUEST_S) -> int:
        """Return the number of partitions of a topic."""
        ...

    async def flushed(self) -> None:
        """Wait until every message is acknowledged."""
        ...


class Outbox:
    """Sends records to their topics.

    Records wait while there is more to read and are sent together; evaluations of one feature form
    one message. ``observe`` gets every record sent; ``encoder`` writes the values of the output
    topics (None: plain JSON). The features are distributed over ``partitions``.
    """

    def __init__(
        self,
        config: Config,
        producer: Sender,
        partitions: int,
        observe: Callable[[Record], None] = lambda _record: None,
        encoder: Encoder | None = None,
    ) -> None:
        self._config = config
        self._producer = producer
        self._observe = observe
        self._encoder = encoder
        self._partitions = partitions
        # not by a hash of the name, which would distribute few features unevenly
        self._feature_partitions = {
            feature: i % partitions for i, feature in enumerate(config.explained)
        }
        sent = {record.TOPIC for record in PUBLISHED}
        joined = {config.source, *config.inputs("join")} if config.is_joined else set()
        for topic in sent | joined:
            # now: the request blocks, and the event loop must not
            producer.partitions(config.topic(topic))
        self._runs: dict[str, _Run] = {}  # by stream
        self._others: list[_Other] = []
        # monotonic times
        self._others_since = self._runs_since = 0.0
        self._runs_sent_at = -PACE_S
        self._dead_letters = DeadLetterLog()

    def publish(
        self, partition: AssignedPartition, records: Sequence[Record], incoming: Message
    ) -> None:
        """Buffer a stage's records about a message, with trace, incarnation and writer."""
        for record in records:
            if isinstance(record, DeadLetter):
                self._dead_letters.see(partition.slot.owner, record, time.monotonic())
            own = partition.life.of(record, partition.slot.role)
            headers = trace_of(record, incoming)
            self.send(own, incoming.key, incoming.partition, headers, owner=partition)

    def send(
        self,
        record: Record,
        source_key: bytes | None,
        source_partition: int,
        headers: Headers = NO_HEADERS,
        *,
        owner: AssignedPartition | None = None,
    ) -> None:
        """Buffer one record, with the key and the partition of the message that it is about.

        A record about no feature takes that key or, without one, that partition, so that a stream's
        records stay in order. Evaluations take no headers, since a message holds many. In topics
        that workers read, the ``owner`` names the writer. Its records are not sent once it was
        revoked: they are in no checkpoint, so the next owner publishes them.
        """
        if isinstance(record, Evaluated):
            self._gather(record, owner)
            return
        if record.TOPIC in OWN_TOPICS and owner is not None:
            headers = {**headers, **owner.signed}
        key = record.message_key()
        key_bytes = source_key if key is None else key.encode()
        if isinstance(record, Explanation):
            # by stream: the drift role compares its features. Not modulo the topic's current
            # partitions: added ones would move a stream away from its state
            partition: int | None = parse_stream(record.stream)[1] % self._partitions
        elif isinstance(record, PassedOn | Control):
            partition = source_partition  # each partition is a stream
        else:
            partition = self._partition(record, source_key, source_partition)
        if not self._others:
            self._others_since = time.monotonic()
        self._others.append(_Other(record, key_bytes, partition, headers, owner))
        if len(self._others) >= MAX_GATHERED:
            self._send_others()

    def send_all_if_old(self, now: float) -> None:
        """Send records that have waited long enough; raise ``DeliveryError`` after a loss."""
        self._producer.serve()
        if self._others and now - self._others_since >= LINGER_S:
            self._send_others()
        if self._runs and now - self._runs_since >= RUN_LINGER_S:
            self._send_runs()

    def send_all(self) -> None:
        """Send all buffered records."""
        self._send_others()
        self._send_runs()

    def send_due(self, now: float) -> float:
        """Send buffered records, but evaluations only :data:`PACE_S` after the last ones.

        Returns the seconds until they are due; 0 if none wait.
        """
        self._send_others()
        wait_s = self._runs_sent_at + PACE_S - now if self._runs else 0.0
        if wait_s <= 0.0:
            self._send_runs()
        return max(wait_s, 0.0)

    @property
    def is_full(self) -> bool:
        """Whether too many messages wait for the broker."""
        return self.waiting >= MAX_WAITING

    def partitions(self, topic: str, beyond: int) -> int:
        """Return the number of a topic's partitions; see :meth:`RecordProducer.partitions`."""
        return self._producer.partitions(topic, beyond=beyond, timeout_s=REQUEST_S)

    @property
    def obstacle(self) -> str | None:
        """Why outputs have waited long for their acknowledgement, or None; from any thread."""
        return self._producer.obstacle

    @property
    def waiting(self) -> int:
        """Number of unacknowledged messages; safe to read from any thread."""
        return self._producer.waiting

    async def delivered(self) -> None:
        """Send all records and wait for their acknowledgement; may raise ``DeliveryError``."""
        self.send_all()
        await self._producer.flushed()

    def _gather(self, record: Evaluated, owner: AssignedPartition | None) -> None:
        if not self._runs:
            self._runs_since = time.monotonic()
        run = self._runs.get(record.stream)
        if run is None or run.owner is not owner:  # another owner's was revoked
            run = self._runs[record.stream] = _Run([], owner)
        run.records.append(record)
        if len(run.records) == RUN_LENGTH:
            self._send_run(self._runs.pop(record.stream))

    def _send_others(self) -> None:
        others = [each for each in self._others if _is_held(each.owner)]
        # all are encoded before the first is sent: those that follow closely share a request
        encoded = [self._encoded(each.record) for each in others]
        for (value, headers), (record, key, partition, more, _) in zip(
            encoded, others, strict=True
        ):
            topic = self._config.topic(record.TOPIC)
            self._producer.send(topic, value, key, partition, headers={**headers, **more})
            self._observe(record)
        self._others.clear()

    def _encoded(self, record: Record) -> tuple[bytes | None, Headers]:
        headers = record.message_headers()
        if self._encoder is None:
            return record.encode(), headers
        return self._encoder.value(record), {**headers, **self._encoder.headers(record)}

    def _send_runs(self) -> None:
        if self._runs:
            self._runs_sent_at = time.monotonic()
        for run in self._runs.values():
            self._send_run(run)
        self._runs.clear()

    def _send_run(self, run: "_Run") -> None:
        if not _is_held(run.owner):
            return
        topic = self._config.topic(Evaluation.TOPIC)
        headers = NO_HEADERS if run.owner is None else run.owner.signed
        wholes = evaluations(run.records)
        for part, value in [each for whole in wholes for each in _packed(whole)]:
            key, partition = part.message_key().encode(), self._partition(part, None, 0)
            self._producer.send(topic, value, key, partition, headers=headers)
            self._observe(part)

    def _partition(
        self, record: Record, source_key: bytes | None, source_partition: int
    ) -> int | None:
        """Return the record's partition; None to derive it from the key."""
        key = record.message_key()
        if key is not None:
            return self._feature_partitions.get(key)
        if source_key is not None:
            return None
        return source_partition % self._producer.partitions(self._config.topic(record.TOPIC))


class _Run(NamedTuple):
    """Evaluations of one stream, by one owner of its partition."""

    records: list[Evaluated]
    owner: AssignedPartition | None


class _Other(NamedTuple):
    """A buffered record of another kind."""

    record: Record
    key: bytes | None
    partition: int | None
    headers: Headers
    owner: AssignedPartition | None


def _is_held(owner: AssignedPartition | None) -> bool:
    return owner is None or owner.is_held


def _packed(run: Evaluation) -> Iterator[tuple[Evaluation, bytes]]:
    """Yield a run with its value, or its parts if that is too large for a message."""
    value, length = run.packed(), len(run.seqs)
    if len(value) > RUN_BYTES and length > 1:
        yield from _packed(run.part(0, length // 2))
        yield from _packed(run.part(length // 2, length))
    else:
        yield run, value


class DeadLetterLog:
    """Counts the dead letters of a worker, and logs their number and the latest reason."""

    def __init__(self) -> None:
        self._count = 0
        self._logged_at: float | None = None

    def see(self, who: str, letter: DeadLetter, now: float) -> None:
        """Count a dead letter; warn if the last warning is long ago. ``now`` is monotonic."""
        self._count += 1
        if self._logged_at is not None and now - self._logged_at < WARN_AGAIN_S:
            return
        reason = letter.reason[:LONGEST_REASON]
        log.warning("%s: %d dead letters; the latest: %s", who, self._count, reason)
        self._count, self._logged_at = 0, now
