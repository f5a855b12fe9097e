"""Questions to the broker that are asked again while another broker takes over."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException

from pipeline.config import Config
from pipeline.kafka.client import refusal
from pipeline.kafka.timeouts import REQUEST_S, TAKEOVER_S

PASSING = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError._WAIT_COORD,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
    }
)
"""Errors that end by themselves: a broker takes over, or does not know a new topic yet."""

PAUSE_S = 0.2

Answer = TypeVar("Answer")


def ask(
    config: Config, consumer: Consumer, topic: str, what: str, question: Callable[[], Answer]
) -> Answer:
    """Return an answer about a topic; ask for up to a minute while a broker takes over.

    Parameters
    ----------
    config
        The settings.
    consumer, topic
        Who asks, and about which topic, by its full name.
    what
        What cannot be done without it, for the error.
    question
        Asks once, and raises ``KafkaException`` if the broker refuses.

    Raises
    ------
    BrokerError
        If the broker refuses, or there is no answer in time.
    """
    deadline = time.monotonic() + TAKEOVER_S
    while True:
        try:
            return question()
        except KafkaException as error:
            problem = error.args[0]
            if problem.code() not in PASSING or time.monotonic() > deadline:
                raise refusal(config, what, problem) from None
        # what the client knows of the partitions may be from before a broker's death
        with suppress(KafkaException):
            consumer.list_topics(topic, timeout=REQUEST_S)
        time.sleep(PAUSE_S)
