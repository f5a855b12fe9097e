"""Where records leave a worker: gathered while more is to be read, else at once."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.ownership.writers import OWN_TOPICS, WRITER, Writer
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import REQUEST_S
from fluxplain.kafka.worker.dead_letter_log import DeadLetterLog
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.schemas import (
    INPUTS,
    RECORDS,
    Control,
    DeadLetter,
    Evaluation,
    Explanation,
    Record,
    parse_stream,
)
from fluxplain.stages import Message
from fluxplain.stages.join import PassedOn
from fluxplain.stages.trace import trace_of

if TYPE_CHECKING:
    from fluxplain.kafka.registry.avro_encoder import Encoder

RUN_LENGTH = 64
"""Most observations in one message of evaluations: enough to make its overhead small."""

LINGER_S = 0.2
"""Longest wait of a record for others, in seconds; without more to read it does not wait. Behind a
backlog it is late anyway, and a broker that is asked less often leaves more of the machine to the
pipeline."""

MAX_GATHERED = 1_000
"""Records other than evaluations that may wait for others."""

RUN_BYTES = 400_000
"""Largest message of evaluations, well below the broker's limit of 1 MB."""

Headers = Mapping[str, bytes]

NO_HEADERS: Headers = {}

MAX_WAITING = 10_000
"""Messages that may wait for their acknowledgement: far fewer than librdkafka's queue takes, since
what waits for room in that cannot hear of a rebalance or of SIGTERM."""


class Outbox:
    """Sends records to their topics.

    Records wait as long as there is more to read, and go out together; evaluations of one feature
    as one message. ``observe`` sees what is sent; ``encoder`` writes the values of the topics that
    people read (None: plain JSON). The features are dealt to ``partitions``.
    """

    def __init__(
        self,
        config: Config,
        producer: RecordProducer,
        partitions: int,
        observe: Callable[[Record], None] = lambda _record: None,
        encoder: "Encoder | None" = None,
    ) -> None:
        self._config = config
        self._producer = producer
        self._observe = observe
        self._encoder = encoder
        self._partitions = partitions
        # a hash of the name would give one partition several times the load of another
        self._places = {feature: i % partitions for i, feature in enumerate(config.explained)}
        sent = {record.TOPIC for record in RECORDS if record not in INPUTS}
        joined = {config.source, *config.inputs("join")} if config.is_joined else set()
        for topic in sent | joined:
            # now: asking the broker blocks, and the event loop must not
            producer.partitions(config.topic(topic))
        self._runs: dict[tuple[str, str], list[Evaluation]] = {}
        self._signed: dict[str, Headers] = {}  # stream → who writes its evaluations
        self._others: list[tuple[Record, bytes | None, int | None, Headers]] = []
        self._waiting_since: float | None = None

    def send(
        self,
        record: Record,
        source_key: bytes | None,
        source_partition: int,
        headers: Headers = NO_HEADERS,
        *,
        writer: Writer | None = None,
    ) -> None:
        """Buffer one record, about a message with a key in a partition.

        A record about no feature takes that key; without a key that partition, so that a stream's
        records stay in order. Evaluations take no headers: a message holds many of them. The topics
        that workers read name the writer.
        """
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
        signed = {} if writer is None else {WRITER: writer.header}
        if isinstance(record, Evaluation):
            self._gather(record, signed)
            return
        if record.TOPIC in OWN_TOPICS:
            headers = {**headers, **signed}
        key = record.message_key()
        key_bytes = source_key if key is None else key.encode()
        if isinstance(record, Explanation):
            # the drift role compares a stream's features with each other; not modulo what the topic
            # has now, or a stream would leave its state when partitions are added
            place: int | None = parse_stream(record.stream)[1] % self._partitions
        elif isinstance(record, PassedOn | Control):
            place = source_partition  # exactly: each partition is a stream
        else:
            place = self._partition(record, source_key, source_partition)
        self._others.append((record, key_bytes, place, headers))
        if len(self._others) >= MAX_GATHERED:
            self._send_others()

    def send_all_if_old(self, now: float) -> None:
        """Send what has waited long enough; raise ``DeliveryError`` if a message was lost."""
        self._producer.serve()
        if self._waiting_since is not None and now - self._waiting_since >= LINGER_S:
            self.send_all()

    def send_all(self) -> None:
        """Send what waits."""
        self._send_others()
        for run in self._runs.values():
            if run:
                self._send_run(run)
        self._runs.clear()
        self._waiting_since = None

    def discard(self) -> None:
        """Drop what waits: it is in no checkpoint, so the next owner publishes it."""
        self._others.clear()
        self._runs.clear()
        self._signed.clear()
        self._waiting_since = None

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the broker that nothing should be added."""
        return self.waiting >= MAX_WAITING

    def partitions(self, topic: str, beyond: int) -> int:
        """Return how many partitions a topic has; see :meth:`RecordProducer.partitions`."""
        return self._producer.partitions(topic, beyond=beyond, timeout_s=REQUEST_S)

    @property
    def obstacle(self) -> str | None:
        """Why outputs wait for their acknowledgement for long; None if none do. From any thread."""
        return self._producer.obstacle

    @property
    def waiting(self) -> int:
        """How many messages the broker has not acknowledged yet; from any thread."""
        return self._producer.waiting

    async def delivered(self) -> None:
        """Wait until the broker has acknowledged everything; raise ``DeliveryError`` if not."""
        self.send_all()
        await self._producer.flushed()

    def _gather(self, record: Evaluation, headers: Headers) -> None:
        self._signed[record.stream] = headers
        run = self._runs.setdefault((record.stream, record.feature), [])
        if run and (len(run) == RUN_LENGTH or not run[-1].continues(record)):
            self._send_run(run)
            run.clear()
        run.append(record)

    def _send_others(self) -> None:
        for record, key, place, more in self._others:
            self._observe(record)
            topic, headers = self._config.topic(record.TOPIC), {**record.message_headers(), **more}
            if self._encoder is None:
                value = record.encode()
            else:
                value = self._encoder.value(record)
                headers |= self._encoder.headers(record)
            self._producer.send(topic, value, key, place, headers=headers)
        self._others.clear()

    def _send_run(self, run: list[Evaluation]) -> None:
        merged = run[0].extended(run[1:])
        value = merged.encode()
        if len(value) > RUN_BYTES and len(run) > 1:
            half = len(run) // 2
            self._send_run(run[:half])
            self._send_run(run[half:])
            return
        self._observe(merged)
        key = merged.message_key()
        partition = self._partition(merged, None, 0)
        topic, headers = self._config.topic(merged.TOPIC), self._signed[merged.stream]
        self._producer.send(topic, value, key.encode(), partition, headers=headers)

    def _partition(
        self, record: Record, source_key: bytes | None, source_partition: int
    ) -> int | None:
        """Return the record's partition; None for the one of its key."""
        key = record.message_key()
        if key is not None:
            return self._places.get(key)
        if source_key is not None:
            return None
        return source_partition % self._producer.partitions(self._config.topic(record.TOPIC))


class Publisher:
    """Publishes what stages return: with its trace, its incarnation and its writer."""

    def __init__(self, replica: Replica, outbox: Outbox) -> None:
        self._replica = replica
        self._outbox = outbox
        self._dead_letters = DeadLetterLog(str(replica))
        self.send_all = outbox.send_all

    def publish(
        self, partition: AssignedPartition, records: Sequence[Record], incoming: Message
    ) -> None:
        """Publish records about a message."""
        for record in records:
            if isinstance(record, DeadLetter):
                self._dead_letters.see(record, time.monotonic())
            trace = trace_of(record, incoming)
            own = partition.life.of(record, self._replica.role)
            place = incoming.key, incoming.partition
            self._outbox.send(own, *place, trace, writer=partition.writer)

    def announce(self, control: Control, partition: int) -> None:
        """Publish a control record about one stream."""
        self._outbox.send(control, None, partition)
