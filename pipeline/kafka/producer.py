"""A producer that knows what the broker has acknowledged."""

import asyncio

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.config import Config
from pipeline.kafka.client import client_settings

DELIVERY_TIMEOUT_S = 120.0
"""How long one message may take, retries included, before it counts as lost. A broker that
restarts is back well before."""

MAX_MESSAGE_BYTES = 1_000_000
"""Largest message; Kafka's own default on brokers and clients."""


class DeliveryError(RuntimeError):
    """The broker did not take a message, so nothing that led to it may be committed."""


class RecordProducer:
    """Sends records in order, and says when all of them have arrived.

    Idempotent and acknowledged by all in-sync replicas: within a partition nothing is lost,
    doubled or swapped by retries.
    """

    def __init__(self, config: Config) -> None:
        self._producer = Producer(
            {
                **client_settings(config),
                "enable.idempotence": True,
                "acks": "all",
                # as Java's clients do, so that a key has one partition whoever writes it
                "partitioner": "murmur2_random",
                "linger.ms": 2,
                "message.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
                "message.max.bytes": MAX_MESSAGE_BYTES,
            }
        )
        self._failure: KafkaError | None = None
        self._partition_counts: dict[str, int] = {}

    def send(
        self, topic: str, value: bytes, key: bytes | None = None, place: int | None = None
    ) -> None:
        """Queue one message; waits while the queue is full.

        Parameters
        ----------
        topic
            Its full name.
        value, key
            The message.
        place
            Partition, modulo the number of partitions of the topic; None for the hash of the key.

        Raises
        ------
        DeliveryError
            If an earlier message was lost, or this one cannot be sent at all.
        """
        self._raise_failure()
        placement = {} if place is None else {"partition": place % self._partitions(topic)}
        while True:
            try:
                self._producer.produce(
                    topic, value=value, key=key, on_delivery=self._delivered, **placement
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise DeliveryError(
                    f"cannot send {len(value):,} bytes to {topic}: {error.args[0].str()}"
                ) from None
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has acknowledged every message.

        Raises
        ------
        DeliveryError
            If one was lost. It is lost after two minutes of retries.
        """
        while self._producer.flush(1.0):
            self._raise_failure()
        self._raise_failure()

    async def flushed(self) -> None:
        """Wait as :meth:`flush` does, without blocking the event loop."""
        if len(self._producer):
            await asyncio.get_running_loop().run_in_executor(None, self.flush)
        self._raise_failure()

    def _partitions(self, topic: str) -> int:
        if topic not in self._partition_counts:
            try:
                metadata = self._producer.list_topics(topic, timeout=DELIVERY_TIMEOUT_S)
            except KafkaException as error:
                raise DeliveryError(f"cannot reach {topic}: {error.args[0].str()}") from None
            self._partition_counts[topic] = max(len(metadata.topics[topic].partitions), 1)
        return self._partition_counts[topic]

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise DeliveryError(f"the broker did not take a message: {self._failure.str()}")
