"""Client settings, metadata requests, and errors that name the broker and the remedy."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from fluxplain.config import Config, KafkaSettings
from fluxplain.errors import UserError
from fluxplain.kafka.timeouts import (
    CLUSTER_QUESTIONS,
    CLUSTER_S,
    LOG_RANGE_S,
    NEW_TOPIC_S,
    REQUEST_S,
    TAKEOVER_S,
    connection_settings,
)
from fluxplain.kafka.tokens import TokenError, TokenRefusedError, fetch_token, shared_tokens
from fluxplain.schemas import stream_name

Answer = TypeVar("Answer")

LIBRDKAFKA_LOG = "fluxplain.librdkafka"

librdkafka_log = logging.getLogger(LIBRDKAFKA_LOG)
"""librdkafka's connection messages. Workers log them; commands raise one error instead."""
librdkafka_log.propagate = False
librdkafka_log.addHandler(logging.NullHandler())


class TopicPartition(NamedTuple):
    """A topic, by its full name, and a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return stream_name(*self)


class BrokerError(UserError):
    """The broker does not answer, or refuses. The message names it and the remedy."""


class AccessError(BrokerError):
    """The broker refuses this client, or cannot prove its identity: retrying does not help."""


def client_settings(config: Config) -> dict[str, Any]:
    """Return librdkafka's settings for the configured broker; they contain secrets."""
    return {
        "log_level": 3,
        "bootstrap.servers": config.kafka.bootstrap_servers,
        **config.kafka.passed_through(),
        **connection_settings(),
        **config.kafka.librdkafka_settings(),
        "logger": librdkafka_log,
    }


def asking_consumer(config: Config, group: str, **settings: Any) -> Consumer:
    """Return a consumer that never joins its group, for requests and assigned partitions."""
    group_settings = {"group.id": group, "enable.auto.commit": False}
    return Consumer({**client_settings(config), **group_settings, **settings})


def cluster(config: Config, timeout_s: float = CLUSTER_S) -> ClusterMetadata:
    """Return the cluster's metadata: brokers, topics, id.

    A broker that is silent for ``timeout_s`` is asked again: it may be busy. Raises ``AccessError``
    if one refuses the credentials or TLS fails, else ``BrokerError`` if none answers.
    """
    problems: list[KafkaError] = []
    admin = AdminClient({**client_settings(config), "error_cb": problems.append})
    for _ in range(CLUSTER_QUESTIONS):
        with suppress(KafkaException):
            return admin.list_topics(timeout=timeout_s)
        admin.poll(0)  # calls error_cb, which gets the reasons
        if problems:
            break
    raise no_answer(config, problems)


def partitions_of(config: Config, topic: str) -> list[int]:
    """Return a topic's partitions; wait for one that was just created; raise ``BrokerError``."""
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
    """Return partition → first offset (``OFFSET_BEGINNING``) or end of the log (``OFFSET_END``).

    ``get_watermark_offsets`` ignores its timeout if a broker goes away (librdkafka issue 4878).
    """
    # as a timestamp, either means that end of the log (Kafka protocol, ListOffsets)
    asked = [confluent_kafka.TopicPartition(topic, each, which) for each in partitions]
    answers = consumer.offsets_for_times(asked, timeout=timeout_s)
    for answer in answers:
        if answer.error:
            raise KafkaException(answer.error)
    return {answer.partition: answer.offset for answer in answers}


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
"""Transient errors: a leader is elected, or a broker does not know a new topic yet."""

RETRY_S = 0.2


def ask(
    config: Config, consumer: Consumer, topic: str, what: str, question: Callable[[], Answer]
) -> Answer:
    """Return the answer to a request about a topic; retry for a minute while a broker takes over.

    Raises ``BrokerError``, which begins with ``what``, if the broker refuses or does not answer.
    """
    deadline = time.monotonic() + TAKEOVER_S
    while True:
        try:
            return question()
        except KafkaException as error:
            problem = error.args[0]
            if problem.code() not in PASSING or time.monotonic() > deadline:
                raise refusal(config, what, problem) from None
        # the client's metadata may predate a broker's death
        with suppress(KafkaException):
            consumer.list_topics(topic, timeout=REQUEST_S)
        time.sleep(RETRY_S)


def ask_log_ranges(
    config: Config, consumer: Consumer, topic: str, partitions: Sequence[int], what: str
) -> dict[TopicPartition, range]:
    """Return the offsets that partitions hold now; see :func:`ask`."""

    def asked(which: int) -> dict[int, int]:
        question = consumer, topic, partitions, which, LOG_RANGE_S
        return ask(config, consumer, topic, what, lambda: log_offsets(*question))

    starts, ends = asked(OFFSET_BEGINNING), asked(OFFSET_END)
    return {TopicPartition(topic, each): range(starts[each], ends[each]) for each in partitions}


def no_topics(config: Config, names: Sequence[str]) -> BrokerError:
    """Return the error for missing topics."""
    user = config.kafka.username
    return BrokerError(
        f"topics are missing: {', '.join(names)}. `fluxplain topics create` makes them"
        + (f"; or the broker's ACLs hide them from kafka.username {user!r}" if user else "")
    )


def refusal(config: Config, what: str, error: KafkaError) -> BrokerError:
    """Return the error for a refusal; ``what`` begins it, such as "cannot create topic x"."""
    if error.code() not in NOT_AUTHORIZED:
        return BrokerError(f"{what}: {error.str()}")
    user = config.kafka.username
    who = f"kafka.username {user!r}" if user else "this client"
    return AccessError(f"{what}: the broker's ACLs do not allow it to {who} ({error.str()})")


def no_answer(config: Config, problems: Sequence[KafkaError]) -> BrokerError:
    """Return the error when no broker answers, from the errors that ``error_cb`` received."""
    kafka = config.kafka
    # librdkafka reports nothing while it repeats a request to a failing token endpoint
    if kafka.uses_tokens and not problems:
        error = _without_token(shared_tokens(kafka).get)
        if error is not None:
            return error
    for problem in reversed(problems):
        if problem.code() in _AUTHENTICATION:
            return _unauthenticated(kafka, problem)
        # an alert refuses a client's certificate after the handshake
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


def _unauthenticated(kafka: KafkaSettings, problem: KafkaError) -> BrokerError:
    if kafka.uses_tokens and _GETS_NONE in problem.str():
        no_token = f"no token from {kafka.token_url} (kafka.token_url): {_reason(problem)}"
        return _without_token(lambda: fetch_token(kafka)) or BrokerError(no_token)
    failed = f"authentication failed: the broker at {kafka.bootstrap_servers} refused the"
    if kafka.uses_tokens:
        return AccessError(
            f"{failed} token of the client {kafka.username!r}: {_reason(problem)} (kafka.token_url "
            "must be an endpoint whose tokens the broker accepts; kafka.token_scope; "
            "kafka.token_extensions)"
        )
    return AccessError(
        f"{failed} username {kafka.username!r} with {kafka.mechanism}: {_reason(problem)} "
        "(kafka.username; kafka.password_file, or the environment variable "
        "FLUXPLAIN_KAFKA__PASSWORD; kafka.sasl_mechanism; kafka.security_protocol)"
    )


def _without_token(ask_for_token: Callable[[], object]) -> BrokerError | None:
    """Return why the token endpoint gives no token; librdkafka says neither its address nor why."""
    try:
        ask_for_token()
    except TokenRefusedError as error:
        return AccessError(f"authentication failed: {error}")
    except TokenError as error:
        return BrokerError(str(error))
    return None


def _reason(problem: KafkaError) -> str:
    return _NOISE.sub("", problem.str()).strip()


_AUTHENTICATION = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}

_GETS_NONE = "Failed to acquire SASL OAUTHBEARER token"
"""Start of librdkafka's message when the token endpoint gives none."""

NOT_AUTHORIZED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

_NOISE = re.compile(
    r"^\S+/\w+: |error:\w+:SSL routines::|, verify that ssl\.ca\.location .*package\)"
    r"| \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)"
)
"""Addresses, timing and advice on its own settings in librdkafka's messages."""
