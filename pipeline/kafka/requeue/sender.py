"""Sends messages again in transactions, so that no two runs of the command both send one."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from fluxplain.config import Config
from fluxplain.kafka.client import client_settings, cluster, refusal
from fluxplain.kafka.embedded import is_embedded_cluster
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES, DeliveryError, RecordProducer
from fluxplain.kafka.requeue.planner import Again
from fluxplain.kafka.timeouts import COMMAND_DEADLINE_S

TRANSACTIONAL_ID = "requeue"
"""Name of the producer, after the prefix: one of a pipeline at a time."""

TRANSACTION_S = 60.0
"""Seconds after which the broker aborts a transaction; one takes far less."""

CANNOT_SEND = "the messages were not sent, or their end is unknown (another run finds out)"
"""Begins an error: an acknowledgement may be lost after the messages have arrived."""

_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
"""Errors of a producer after another one with its name has begun."""


class Requeuer(Protocol):
    """Sends messages again, to their partitions, in order."""

    def send(self, messages: Sequence[Again]) -> None:
        """Send messages, and wait for their acknowledgement; may raise ``DeliveryError``."""


class Transactions:
    """Sends all messages of a call, or none.

    1. It begins by ending what an earlier run left open: the broker aborts its transaction, and
       takes nothing more from it.
    2. Then the caller looks for what was sent again until now; no other run can add to it, or it
       would end this one.
    3. Each :meth:`send` is one transaction. If the process dies, the broker aborts it.

    Raises ``DeliveryError`` if another run has begun, and ``BrokerError`` if the broker refuses.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        timeout_ms = int(TRANSACTION_S * 1000)
        self._producer = Producer(
            {
                "compression.type": "lz4",
                **client_settings(config),
                "transactional.id": config.topic(TRANSACTIONAL_ID),
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "message.max.bytes": MAX_MESSAGE_BYTES,
            }
        )
        self._call(lambda: self._producer.init_transactions(COMMAND_DEADLINE_S))

    def send(self, messages: Sequence[Again]) -> None:
        """Send messages in one transaction."""
        self._call(self._producer.begin_transaction)
        try:
            for again in messages:
                self.produce(again)
            self._call(lambda: self._producer.commit_transaction(COMMAND_DEADLINE_S))
        except BaseException:  # also Ctrl-C
            with suppress(KafkaException):
                self._producer.abort_transaction(1.0)
            raise

    def produce(self, again: Again) -> None:
        """Send one message; it counts once the transaction is committed."""
        topic, partition, _ = again.place
        what = topic, again.original.value, again.original.key, partition
        while True:
            try:
                self._call(lambda: self._producer.produce(*what, headers=again.headers))
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _call(self, step: Callable[[], object]) -> None:
        try:
            step()
        except KafkaException as error:
            problem = error.args[0]
            if problem.code() in _FENCED:
                raise DeliveryError(
                    "another `fluxplain dead-letters requeue` has begun meanwhile: this one was "
                    "stopped by the broker, so that nothing is sent twice"
                ) from None
            raise refusal(self._config, CANNOT_SEND, problem) from None


class OneByOne:
    """Sends messages one by one, to the embedded broker.

    Its marks of transactions have wrong checksums, and stop workers. So two runs at the same time
    are not kept apart there; one that ends early has sent a prefix.
    """

    def __init__(self, config: Config) -> None:
        self._producer = RecordProducer(config, deadline_s=COMMAND_DEADLINE_S)

    def send(self, messages: Sequence[Again]) -> None:
        """Send messages, and wait for their acknowledgement."""
        for again in messages:
            topic, partition, _ = again.place
            value, key = again.original.value, again.original.key
            self._producer.send(topic, value, key, partition, headers=again.headers)
        self._producer.flush()


def open_requeuer(config: Config) -> Requeuer:
    """Return what sends messages again to the configured broker."""
    return OneByOne(config) if is_embedded_cluster(cluster(config)) else Transactions(config)
