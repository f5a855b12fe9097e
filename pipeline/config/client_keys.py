"""The table ``[kafka.client]``: settings for librdkafka, by its own names."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fluxplain.errors import shown

_OWN = {
    "bootstrap.servers": "it is kafka.bootstrap_servers",
    "security.protocol": "it is kafka.security_protocol",
    "group.instance.id": "it is kafka.group_instance_id",
    "session.timeout.ms": "it is kafka.session_timeout_s",
    "heartbeat.interval.ms": "it follows from kafka.session_timeout_s",
    "max.poll.interval.ms": "it follows from kafka.delivery_timeout_s",
    "message.timeout.ms": "see kafka.delivery_timeout_s",
}
_ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "delivery.timeout.ms": "message.timeout.ms",
}

_REASONS = {
    "each partition must hold a prefix of the messages, without a hole or a repetition": (
        "enable.idempotence enable.gapless.guarantee acks request.required.acks max.in.flight "
        "max.in.flight.requests.per.connection message.send.max.retries retries queuing.strategy "
        "delivery.report.only.error transactional.id transaction.timeout.ms"
    ),
    "keys must belong to the same partition for every client": "partitioner",
    "messages of aborted transactions were never observed": "isolation.level",
    "only the client knows which messages are done, and where it begins to read": (
        "enable.auto.commit auto.commit.enable auto.commit.interval.ms enable.auto.offset.store "
        "auto.offset.reset enable.partition.eof offset.store.method"
    ),
    "groups and their protocol are part of the pipeline": (
        "group.id group.protocol group.protocol.type group.remote.assignor "
        "partition.assignment.strategy"
    ),
    "the timeouts and pauses of the clients depend on each other": (
        "socket.timeout.ms request.timeout.ms reconnect.backoff.ms reconnect.backoff.max.ms "
        "retry.backoff.ms retry.backoff.max.ms topic.metadata.refresh.interval.ms "
        "fetch.wait.max.ms fetch.error.backoff.ms"
    ),
    "larger messages become dead letters": "message.max.bytes",
    "it bounds the memory of readers": (
        "queued.min.messages queued.max.messages.kbytes fetch.message.max.bytes "
        "max.partition.fetch.bytes"
    ),
    "topics are created by `fluxplain topics create`": "allow.auto.create.topics",
    "it would load code into every process": "plugin.library.paths interceptors",
    "it belongs to the program that calls librdkafka": (
        "logger log.queue enabled_events opaque default_topic_conf on_commit"
    ),
}

_REFUSED = {key: why for why, keys in _REASONS.items() for key in keys.split()} | _OWN

_PATTERNS = {
    r"(sasl|ssl|https)[._]|security\.|enable\.(sasl|ssl)\.|oauthbearer": (
        "the workers' other Kafka client would not get it, and both must authenticate alike: the "
        "keys of [kafka] are for both"
    ),
    r".*(_cb|_callback|_callback_data)$": "it belongs to the program that calls librdkafka",
    r"test\.": "it is for tests of librdkafka",
}

_SECRET = re.compile(r"sasl|ssl|https|pass|secret|pem|token|credential|auth", re.IGNORECASE)
"""Keys whose values are not shown, whether librdkafka knows them or not."""

Value = str | bool | int | float


def _checked(table: Any) -> Any:
    """Return librdkafka's settings; raise ``ValueError`` for one that the product depends on."""
    if not isinstance(table, Mapping):
        return table
    settings = dict(_flat(table))
    for key, value in settings.items():
        if (why := refusal(key)) is not None:
            raise ValueError(_line(key, value, f"must not be set here: {why}"))
        if not isinstance(value, Value):
            raise ValueError(f"{key} must be a text, a number, true or false")
    return settings


def _flat(table: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield key and value: without quotes TOML reads ``client.rack`` as a table."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def refusal(key: str) -> str | None:
    """Return why a key of librdkafka must not be set; None if it may be."""
    key = _ALIASES.get(key, key)
    if key in _REFUSED:
        return _REFUSED[key]
    return next((why for pattern, why in _PATTERNS.items() if re.match(pattern, key)), None)


def _line(key: str, value: object, what: str) -> str:
    is_secret = _SECRET.search(key) is not None
    return f"{key} is {'set' if is_secret else shown(value)}, but {what}"


ClientKeys = Annotated[Mapping[str, Value], BeforeValidator(_checked), Field(repr=False)]
"""librdkafka's key → value."""


def texts(client: Mapping[str, Value]) -> dict[str, str]:
    """Return the settings as librdkafka reads them."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in client.items()
    }


def check_with_librdkafka(client: Mapping[str, Value]) -> None:
    """Raise ``ValueError`` with librdkafka's reason if it does not accept the settings.

    No connection is opened: there is no address.
    """
    if not client:
        return
    # loaded here: most settings have none of these keys
    from confluent_kafka import Consumer, KafkaException, Producer  # noqa: PLC0415

    given = {**texts(client), "log_level": "0"}
    try:
        Producer({**given, "enable.idempotence": "true", "acks": "all"})
        Consumer({**given, "group.id": "check"}).close()
    except KafkaException as error:
        reason = " ".join(error.args[0].str().split())
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
    else:
        return
    named = next((key for key in client if f'"{key}"' in reason), None)
    key = "" if named is None else f".{named}"
    raise ValueError(f"kafka.client{key} cannot be used: {reason} (librdkafka)")
