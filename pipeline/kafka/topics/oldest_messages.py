"""Reads when the first messages from given offsets on were published."""

import time
from collections.abc import Iterator, Mapping

import confluent_kafka
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message

from fluxplain.config import Config
from fluxplain.kafka.client import TopicPartition, asking_consumer
from fluxplain.kafka.timeouts import OLDEST_S
from fluxplain.kafka.topics.topic_reader import GROUP, tp_of

FETCH_BYTES = 64 * 1024
"""Bytes to fetch of a partition at a time: one message of it is used. A larger batch comes alone,
after those of the other partitions."""

POLL_S = 0.1


class OldestMessages:
    """One consumer that reads single messages, without a group's membership or commits."""

    def __init__(self, config: Config) -> None:
        settings = {
            "auto.offset.reset": "earliest",  # the log may be shortened meanwhile
            "enable.partition.eof": True,
            "fetch.message.max.bytes": FETCH_BYTES,
            "fetch.wait.max.ms": 50,
            "queued.min.messages": 1,
        }
        self._consumer = asking_consumer(config, f"{config.topics.prefix}{GROUP}", **settings)

    def published_at(
        self, logs: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, float | None]:
        """Return when the first message of each log was published, in seconds since 1970.

        ``logs`` has the offset to begin with, and that of the next new message, whether or not its
        transaction is committed. The time is None where no message follows: marks of transactions
        are none. Partitions are missing whose message could not be read within ``OLDEST_S``, has no
        timestamp above 0, or belongs to an open transaction.
        """
        waiting, found = set(logs), dict[TopicPartition, float | None]()
        try:
            self._consumer.assign(
                [confluent_kafka.TopicPartition(*tp, offset) for tp, (offset, _) in logs.items()]
            )
            for message in self._messages():
                if message is not None and (tp := tp_of(message)) in waiting:
                    waiting.remove(tp)
                    self._consumer.incremental_unassign([confluent_kafka.TopicPartition(*tp)])
                    found |= _time_of(tp, message, logs[tp][1])
                if not waiting:
                    break
            self._consumer.unassign()
        except KafkaException:
            pass  # what was not read is missing
        return found

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _messages(self) -> Iterator[Message | None]:
        """Yield messages, errors and timeouts until ``OLDEST_S`` has passed."""
        deadline = time.monotonic() + OLDEST_S
        while time.monotonic() < deadline:
            yield self._consumer.poll(POLL_S)


def _time_of(tp: TopicPartition, message: Message, end: int) -> dict[TopicPartition, float | None]:
    if error := message.error():
        # an open transaction ends the log before its end
        is_empty = error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= end
        return {tp: None} if is_empty else {}
    kind, at_ms = message.timestamp()
    # producers set the time: 0 stands for one that they do not know
    is_known = kind != TIMESTAMP_NOT_AVAILABLE and at_ms > 0
    return {tp: at_ms / 1000.0} if is_known else {}
