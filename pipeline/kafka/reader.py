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
from pipeline.kafka.client import client_settings, partitions_of, refusal


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

    Raises
    ------
    BrokerError
        If the broker does not answer, or a topic does not exist.
    """

    def __init__(self, config: Config, topics: Sequence[str], *, from_beginning: bool) -> None:
        self._config = config
        self._prefix = config.topics.prefix
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        partitions = [
            TopicPartition(topic, partition, offset)
            for topic in map(config.topic, topics)
            for partition in partitions_of(config, topic)
        ]
        self._unfinished = {(each.topic, each.partition) for each in partitions}
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{self._prefix}reader",  # never joined: partitions are assigned
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 50,
            }
        )
        self._consumer.assign(partitions)

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
            if problem and problem.code() == KafkaError._PARTITION_EOF:
                self._unfinished.discard((message.topic(), message.partition()))
            if problem and problem.code() not in _PASSING:
                raise refusal(self._config, _WHAT, problem)
        return [message for message in messages if not message.error()]

    @property
    def is_through(self) -> bool:
        """Whether the end of every partition was reached at some time."""
        return not self._unfinished

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
