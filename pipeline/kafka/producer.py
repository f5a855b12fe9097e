"""A producer that knows what the broker has acknowledged."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.config import Config
from pipeline.kafka.client import client_settings, refusal

log = logging.getLogger("fluxplain.producer")

DELIVERY_TIMEOUT_S = 120.0
"""How long one message may take, retries included, before it counts as lost. A broker that
restarts is back well before."""

PATIENCE_S = 10.0
"""After how long of waiting the log says so."""

MAX_MESSAGE_BYTES = 1_000_000
"""Largest message; Kafka's own default on brokers and clients."""


class DeliveryError(RuntimeError):
    """The broker did not take a message, so nothing that led to it may be committed."""


class OversizeError(DeliveryError):
    """A message is larger than the broker takes, and would be again."""


class RecordProducer:
    """Sends records in order, and says when all of them have arrived.

    Idempotent and acknowledged by all in-sync replicas: within a partition nothing is lost,
    doubled or swapped by retries.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._producer = Producer(
            {
                **client_settings(config),
                "enable.idempotence": True,
                "acks": "all",
                # as Java's clients do, so that a key has one partition whoever writes it
                "partitioner": "murmur2_random",
                "linger.ms": 2,
                "compression.type": "lz4",
                "message.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000),
                "message.max.bytes": MAX_MESSAGE_BYTES,
            }
        )
        self._failure: DeliveryError | None = None
        self._partition_counts: dict[str, int] = {}

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        place: int | None = None,
        *,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Queue one message; waits while the queue is full.

        Parameters
        ----------
        topic
            Its full name.
        value, key
            The message; without a value it removes the key's others from a compacted topic.
        place
            Partition, modulo the number of partitions of the topic; None for the hash of the key.
        headers
            What else it carries.

        Raises
        ------
        DeliveryError
            If an earlier message was lost, or this one cannot be sent at all.
        """
        self._raise_failure()
        more: dict[str, Any] = {}
        if place is not None:
            more["partition"] = place % self.partitions(topic)
        if headers:
            more["headers"] = dict(headers)
        while True:
            try:
                self._producer.produce(
                    topic, value=value, key=key, on_delivery=self._delivered, **more
                )
                break
            except BufferError:
                self._serve(self._producer.poll, 0.1)
            except KafkaException as error:
                self._serve(self._producer.poll, 0.0)  # raises what was fatal, if anything was
                raise _explained(error.args[0], topic, len(value or b"")) from None
        self._serve(self._producer.poll, 0.0)

    def flush(self) -> None:
        """Wait until the broker has acknowledged every message.

        Raises
        ------
        DeliveryError
            If one was lost. It is lost after two minutes of retries.
        """
        since, told = time.monotonic(), False
        while waiting := self._serve(self._producer.flush, 1.0):
            self._raise_failure()
            if not told and time.monotonic() - since > PATIENCE_S:
                told = True
                log.warning("%d messages are not acknowledged yet: %s", waiting, self._obstacle())
        self._raise_failure()
        if told:
            log.warning("all messages are acknowledged, after %.0f s", time.monotonic() - since)

    def _serve(self, call: Callable[[float], int], timeout_s: float) -> int:
        """Let librdkafka call back; an error that is fatal to the producer surfaces here."""
        try:
            return call(timeout_s)
        except (KafkaException, SystemError) as error:
            # the second is what becomes of the first on its way through a callback
            fatal = error if isinstance(error, KafkaException) else error.__cause__
            if not isinstance(fatal, KafkaException):
                raise
            reason = refusal(self._config, "cannot send messages", fatal.args[0])
            raise DeliveryError(str(reason)) from None

    async def flushed(self) -> None:
        """Wait as :meth:`flush` does, without blocking the event loop."""
        if self.waiting:
            await asyncio.get_running_loop().run_in_executor(None, self.flush)
        self._raise_failure()

    def _obstacle(self) -> str:
        try:
            self._producer.list_topics(timeout=2.0)
        except KafkaException:
            return "the broker does not answer; waiting for it"
        return (
            "the broker answers, but does not take them, for want of in-sync replicas or of disk "
            "space (its log says more); trying on"
        )

    @property
    def waiting(self) -> int:
        """How many messages are not acknowledged yet."""
        return len(self._producer)

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; the broker is asked once.

        Raises
        ------
        DeliveryError
            If it does not answer.
        """
        if topic not in self._partition_counts:
            try:
                metadata = self._producer.list_topics(topic, timeout=DELIVERY_TIMEOUT_S)
            except KafkaException as error:
                raise DeliveryError(f"cannot reach {topic}: {error.args[0].str()}") from None
            self._partition_counts[topic] = max(len(metadata.topics[topic].partitions), 1)
        return self._partition_counts[topic]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = _explained(error, str(message.topic()), len(message.value() or b""))

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _explained(error: KafkaError, topic: str, size: int) -> DeliveryError:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return OversizeError(
            f"a message of {size:,} bytes is too large for {topic}: raise the topic's "
            f"max.message.bytes to {MAX_MESSAGE_BYTES:,}, or if the message is larger than that, "
            "take fewer grid points or inner samples"
        )
    return DeliveryError(f"the broker did not take a message for {topic}: {error.str()}")
