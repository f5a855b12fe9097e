"""Where records leave a worker: evaluations gathered into runs, all else at once."""

import time

from pipeline.config import Config
from pipeline.kafka.producer import RecordProducer
from schemas import RECORDS, Evaluation, Record

RUN_LENGTH = 64
"""Most observations in one message of evaluations: enough to make its overhead small."""

LINGER_S = 0.05
"""Longest wait of an evaluation for others, in seconds; without more to read it does not wait."""

RUN_BYTES = 400_000
"""Largest message of evaluations, well below the broker's limit of 1 MB."""

MAX_WAITING = 10_000
"""Messages that may wait for their acknowledgement: far fewer than librdkafka's queue takes, since
what waits for room in that cannot hear of a rebalance or of SIGTERM."""


class Outbox:
    """Sends records to their topics.

    Evaluations of one feature wait for the next observations, as long as some are already there,
    and go out as one message.

    Parameters
    ----------
    config, producer
        Settings, and what sends.
    partitions
        How many partitions the features are dealt to; see :func:`feature_partitions`.
    """

    def __init__(self, config: Config, producer: RecordProducer, partitions: int) -> None:
        self._config = config
        self._producer = producer
        # a hash of the name would give one partition several times the load of another
        self._places = {feature: i % partitions for i, feature in enumerate(config.features)}
        for record in RECORDS:
            # now: asking the broker blocks, and the event loop must not
            producer.partitions(config.topic(record.TOPIC))
        self._runs: dict[tuple[str, str], list[Evaluation]] = {}
        self._waiting_since: float | None = None

    def send(self, record: Record, source_key: bytes | None, source_partition: int) -> None:
        """Take one record.

        Parameters
        ----------
        record
            What to publish.
        source_key, source_partition
            Of the message that it came from. A record about no feature takes its key; without a
            key its partition, so that a stream's records stay in order.
        """
        if isinstance(record, Evaluation):
            self._gather(record)
            return
        key = record.message_key()
        key_bytes = source_key if key is None else key.encode()
        self._produce(record, key_bytes, self._partition(key, source_key, source_partition))

    def send_runs_if_old(self, now: float) -> None:
        """Send the evaluations that have waited long enough."""
        if self._waiting_since is not None and now - self._waiting_since >= LINGER_S:
            self.send_runs()

    def send_runs(self) -> None:
        """Send the evaluations that wait."""
        for run in self._runs.values():
            if run:
                self._send_run(run)
        self._runs.clear()
        self._waiting_since = None

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the broker that nothing should be added."""
        return self._producer.waiting >= MAX_WAITING

    async def delivered(self) -> None:
        """Wait until the broker has acknowledged everything.

        Raises
        ------
        DeliveryError
            If a message was lost.
        """
        self.send_runs()
        await self._producer.flushed()

    def _gather(self, record: Evaluation) -> None:
        run = self._runs.setdefault((record.stream, record.feature), [])
        if run and (len(run) == RUN_LENGTH or not run[-1].continues(record)):
            self._send_run(run)
            run.clear()
        run.append(record)
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()

    def _send_run(self, run: list[Evaluation]) -> None:
        merged = run[0].extended(run[1:])
        value = merged.encode()
        if len(value) > RUN_BYTES and len(run) > 1:
            half = len(run) // 2
            self._send_run(run[:half])
            self._send_run(run[half:])
            return
        key = merged.message_key()
        partition = self._partition(key, None, 0)
        self._producer.send(self._config.topic(merged.TOPIC), value, key.encode(), partition)

    def _produce(self, record: Record, key: bytes | None, partition: int | None) -> None:
        self._producer.send(self._config.topic(record.TOPIC), record.encode(), key, partition)

    def _partition(
        self, key: str | None, source_key: bytes | None, source_partition: int
    ) -> int | None:
        """Return a place to be taken modulo the partitions; None for the hash of the key."""
        if key is None:
            return source_partition if source_key is None else None
        return self._places.get(key)
