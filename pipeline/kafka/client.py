"""Settings that every client of Kafka shares, and what can go wrong with the broker."""

import logging
import re
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata

from pipeline.config import Config
from pipeline.kafka.timeouts import CLUSTER_S, NEW_TOPIC_S, connection_settings

LIBRDKAFKA_LOG = "fluxplain.librdkafka"

librdkafka_log = logging.getLogger(LIBRDKAFKA_LOG)
"""What librdkafka says of its connections, over and over. Workers put it into their log; for
commands the error that follows says it once."""
librdkafka_log.propagate = False
librdkafka_log.addHandler(logging.NullHandler())


Place = tuple[str, int]
"""A topic, by its full name, and a partition."""


class BrokerError(RuntimeError):
    """The broker does not answer, or refuses. The message says which one and what to do."""


class AccessError(BrokerError):
    """The broker does not let this client in, or is not who it should be: nothing to try again."""


def client_settings(config: Config) -> dict[str, Any]:
    """Return librdkafka's settings for a client of the configured broker; secrets are in them."""
    return {
        "bootstrap.servers": config.kafka.bootstrap_servers,
        **connection_settings(),
        **config.kafka.librdkafka_settings(),
        "log_level": 3,
        "logger": librdkafka_log,
    }


def cluster(config: Config, timeout_s: float = CLUSTER_S) -> ClusterMetadata:
    """Return what the cluster says of itself: brokers, topics, id.

    Raises
    ------
    AccessError
        If a broker refuses the username and password, or TLS fails.
    BrokerError
        If no broker answers in time.
    """
    problems: list[KafkaError] = []
    admin = AdminClient({**client_settings(config), "error_cb": problems.append})
    try:
        return admin.list_topics(timeout=timeout_s)
    except KafkaException:
        admin.poll(0)  # calls error_cb: only that is told why
        raise no_answer(config, problems) from None


def partitions_of(config: Config, topic: str) -> list[int]:
    """Return the partitions of a topic, by its full name.

    A topic that was made a moment ago is waited for: brokers tell each other a little later.

    Raises
    ------
    BrokerError
        If the broker does not answer, or there is no such topic.
    """
    deadline = time.monotonic() + NEW_TOPIC_S
    while True:
        known = cluster(config).topics
        if topic in known:
            return list(known[topic].partitions)
        if time.monotonic() > deadline:
            raise no_topics(config, [topic])
        time.sleep(0.2)


def log_offsets(
    consumer: Consumer, topic: str, partitions: Sequence[int], which: int, timeout_s: float
) -> dict[int, int]:
    """Return partition → the oldest offset that is there, or the next one to come.

    Not by ``get_watermark_offsets``, whose time limit does not hold: asked of a broker that goes
    away, it waits until the broker is back (librdkafka's issue 4878).

    Parameters
    ----------
    consumer, topic, partitions
        Who asks, and for which partitions of which topic, by its full name.
    which
        ``OFFSET_BEGINNING`` or ``OFFSET_END``.
    timeout_s
        Seconds to wait for the answers.

    Raises
    ------
    KafkaException
        If they do not come, or one of them is an error.
    """
    # as a time, either stands for that end of the log (Kafka protocol, ListOffsets)
    asked = [TopicPartition(topic, partition, which) for partition in partitions]
    answers = consumer.offsets_for_times(asked, timeout=timeout_s)
    for answer in answers:
        if answer.error:
            raise KafkaException(answer.error)
    return {answer.partition: answer.offset for answer in answers}


def no_topics(config: Config, names: Sequence[str]) -> BrokerError:
    """Return what to raise when topics, by their full names, do not exist."""
    user = config.kafka.username
    return BrokerError(
        f"topics are missing: {', '.join(names)}. `fluxplain topics create` makes them"
        + (f"; or the broker's ACLs hide them from kafka.username {user!r}" if user else "")
    )


def refusal(config: Config, what: str, error: KafkaError) -> BrokerError:
    """Return what to raise when the broker answers a request with an error.

    Parameters
    ----------
    config
        The settings.
    what
        What cannot be done, as "cannot create topic x".
    error
        The answer.
    """
    if error.code() not in NOT_AUTHORIZED:
        return BrokerError(f"{what}: {error.str()}")
    user = config.kafka.username
    who = f"kafka.username {user!r}" if user else "this client"
    return AccessError(f"{what}: the broker's ACLs do not allow it to {who} ({error.str()})")


def no_answer(config: Config, problems: Sequence[KafkaError]) -> BrokerError:
    """Return what to raise when no broker answers, by what ``error_cb`` was told meanwhile."""
    kafka = config.kafka
    for problem in reversed(problems):
        if problem.code() in _AUTHENTICATION:
            return AccessError(
                f"authentication failed: the broker at {kafka.bootstrap_servers} refused the "
                f"username {kafka.username!r} with {kafka.mechanism}: {_reason(problem)} "
                "(kafka.username; kafka.password_file, or the environment variable "
                "FLUXPLAIN_KAFKA__PASSWORD; kafka.sasl_mechanism; kafka.security_protocol)"
            )
        # a client's certificate is refused by an alert, when the handshake is over already
        if problem.code() == KafkaError._SSL or "SSL alert" in problem.str():
            return AccessError(
                f"TLS failed: there is no trusted connection to {kafka.bootstrap_servers}: "
                f"{_reason(problem)} (kafka.ca_file must hold the certificate of the authority "
                "that signed the broker's, which must be for the name in "
                "kafka.bootstrap_servers; kafka.client_cert_file must be one that the broker "
                "trusts)"
            )
    reasons = [_reason(each) for each in problems if each.code() != KafkaError._ALL_BROKERS_DOWN]
    return BrokerError(
        f"no broker answers at {kafka.bootstrap_servers} (kafka.bootstrap_servers, or the "
        "environment variable FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS) over "
        f"{kafka.security_protocol} (kafka.security_protocol)"
        + (f": {reasons[-1]}" if reasons else "")
    )


def _reason(problem: KafkaError) -> str:
    return _NOISE.sub("", problem.str()).strip()


_AUTHENTICATION = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}

NOT_AUTHORIZED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}

_NOISE = re.compile(
    r"^\S+/\w+: |error:\w+:SSL routines::|, verify that ssl\.ca\.location .*package\)"
    r"| \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)"
)
"""What librdkafka adds to its messages: addresses, timing, advice on its own settings."""
