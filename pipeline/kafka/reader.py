"""Reads the pipeline's topics as any consumer would, without a group."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from pipeline.config import Config
from pipeline.kafka.client import client_settings, log_offsets, partitions_of, refusal

OFFSETS_TIMEOUT_S = 30.0

QUEUED_KB = 8 * 1024
"""What is fetched ahead of who reads: librdkafka's own 64 MB are for faster readers."""


class TopicReader:
    """Messages of some topics, all partitions, as they come.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topics
        Names without the prefix.
    from_beginning
        Start with the oldest message there is; else with the next new one.
    newest
        With ``from_beginning``, start with at most so many messages of each partition; None for
        all.

    Attributes
    ----------
    backlog
        How many messages there were to read at the start; 0 if not asked for with ``newest``.

    Raises
    ------
    BrokerError
        If the broker does not answer, or a topic does not exist.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        *,
        from_beginning: bool,
        newest: int | None = None,
    ) -> None:
        self._config = config
        self._prefix = config.topics.prefix
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        partitions = [
            TopicPartition(topic, partition, offset)
            for topic in map(config.topic, topics)
            for partition in partitions_of(config, topic)
        ]
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{self._prefix}reader",  # never joined: partitions are assigned
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 50,
                "queued.max.messages.kbytes": QUEUED_KB,
            }
        )
        self.backlog = 0
        if from_beginning and newest is not None:
            partitions = [
                TopicPartition(topic, partition, start)
                for topic in map(config.topic, topics)
                for partition, start in self._newest(topic, newest).items()
            ]
        self._consumer.assign(partitions)

    def _newest(self, topic: str, count: int) -> dict[int, int]:
        """Return partition → offset of the first of the newest messages of a topic."""
        known = partitions_of(self._config, topic)
        try:
            starts, ends = (
                log_offsets(self._consumer, topic, known, which, OFFSETS_TIMEOUT_S)
                for which in (OFFSET_BEGINNING, OFFSET_END)
            )
        except KafkaException as error:
            self._consumer.close()
            raise refusal(self._config, _WHAT, error.args[0]) from None
        first = {p: max(starts[p], end - count) for p, end in ends.items()}
        self.backlog += sum(end - first[p] for p, end in ends.items())
        return first

    def poll(self, timeout_s: float, limit: int = 1000) -> list[Message]:
        """Return the next messages; none if none came in time.

        Raises
        ------
        BrokerError
            If the broker reports an error that does not pass by itself.
        """
        try:
            messages = self._consumer.consume(limit, timeout_s)
        except KafkaException as error:
            raise refusal(self._config, _WHAT, error.args[0]) from None
        for message in messages:
            problem = message.error()
            if problem and problem.code() not in _PASSING:
                raise refusal(self._config, _WHAT, problem)
        return [message for message in messages if not message.error()]

    def name(self, message: Message) -> str:
        """Return the message's topic without the prefix."""
        return str(message.topic()).removeprefix(self._prefix)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


_WHAT = "cannot read the topics"

_PASSING = {
    KafkaError._PARTITION_EOF,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
