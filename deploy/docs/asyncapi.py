"""Generates the AsyncAPI document of all topics from records, settings and roles."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import orjson

from deploy.strimzi import EVERY_ROLE_WRITES, WRITES
from fluxplain import __version__, schemas
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.create import TopicSpec, topic_specs
from fluxplain.schemas.__main__ import FOLDER, schema_path
from fluxplain.stages.join_stage import PassedOn
from fluxplain.stages.stage import ORIGIN, ORIGIN_TIME, PREVIOUS

PATH = FOLDER / "asyncapi.json"

SCHEMA_FORMAT = "application/schema+json;version=draft-2020-12"

BINDING = "0.5.0"
"""Version of AsyncAPI's Kafka bindings."""

PREFIX = "fluxplain."

KEYS: dict[type[schemas.Record], str] = {
    schemas.Observation: "Any, or none, for example an entity or a tenant.",
    schemas.LateLabel: "The observation's key.",
    schemas.Control: "None.",
    schemas.Prediction: "The observation's key.",
    schemas.Reasons: "The observation's key.",
    schemas.Evaluation: "The feature or group; for a pair first|second.",
    schemas.Explanation: "The feature or group; for a pair first|second.",
    schemas.Change: "The feature, group or pair; the stream for a change without one.",
    schemas.DeadLetter: "The message's key; cut if it is too long.",
    schemas.Note: "The change's id; for a mute feature@stream, without stream for all.",
}

_TRACE = {
    "traceparent": "W3C Trace Context of the observation.",
    "tracestate": "Vendor-specific part of the W3C Trace Context.",
}

HEADERS: dict[type[schemas.Record], dict[str, str]] = {
    **dict.fromkeys(
        (
            *(schemas.Observation, schemas.LateLabel, schemas.Prediction, schemas.Reasons),
            schemas.DeadLetter,
        ),
        _TRACE,
    ),
    schemas.Change: {
        "ce_specversion": "1.0: a change is a CloudEvent, in binary mode.",
        "ce_id": "id",
        "ce_source": "stream",
        "ce_type": "fluxplain.change. followed by the kind.",
        "ce_subject": "feature; absent for a change without one.",
        "ce_time": "ts, if it is in RFC 3339 format.",
        "content-type": "application/json",
        **_TRACE,
    },
}
"""Record → header → its description. Each header may be missing."""

ORIGIN_HEADERS = {
    ORIGIN: "Where the message was written: topic-partition@offset.",
    PREVIOUS: "Offset of the previous message forwarded from there; none for the first.",
    ORIGIN_TIME: "When the message was written there, in milliseconds since 1970.",
}

JOINED = "Joined"
"""Prefix of the names of forwarded messages."""

Part = dict[str, Any]


def text() -> bytes:
    """Return the content of the document's file."""
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2) + b"\n"


def document() -> Part:
    """Return the document for a pipeline with every optional topic."""
    config = Config(
        features={"feature": "numeric"},
        model={"factory": "river.linear_model:LogisticRegression"},
        label={"topic": True},
        control={"topic": True},
        topics={"prefix": PREFIX},
    )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "fluxplain",
            "version": __version__,
            "description": "Explains models in flux: what an online model on Kafka relies on now, "
            "and when that changes. Operations are the pipeline's: each role receives from the "
            "topics it reads and sends to those it writes; people write and read notes. The topics "
            "labels, control and observations exist only if configured.",
            "license": {"name": "MIT"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "kafka": {
                "host": "{brokers}",
                "protocol": "kafka",
                "variables": {
                    "brokers": {
                        "default": config.kafka.bootstrap_servers,
                        "description": "kafka.bootstrap_servers",
                    }
                },
            }
        },
        "channels": {_topic(spec): _channel(spec) for spec in topic_specs(config)},
        "operations": dict(_operations(config)),
        "components": {
            "messages": {
                **{kind.__name__: _message(kind) for kind in schemas.RECORDS},
                **{
                    f"{JOINED}{kind.__name__}": _message(kind, ORIGIN_HEADERS)
                    for kind in schemas.INPUTS
                },
            }
        },
    }


def _topic(spec: TopicSpec) -> str:
    return spec.name.removeprefix(PREFIX)


def _channel(spec: TopicSpec) -> Part:
    topic = _topic(spec)
    if topic == PassedOn.TOPIC:
        names = [f"{JOINED}{kind.__name__}" for kind in schemas.INPUTS]
    else:
        names = [kind.__name__ for kind in schemas.RECORDS if topic == kind.TOPIC]
    policy: Part = {"cleanup.policy": [spec.settings["cleanup.policy"]]}
    if "retention.ms" in spec.settings:  # compacted topics have none
        policy["retention.ms"] = int(spec.settings["retention.ms"])
    return {
        "address": f"{{prefix}}{topic}",
        "summary": spec.purpose,
        "parameters": {"prefix": {"default": PREFIX, "description": "topics.prefix"}},
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {
            "kafka": {
                "partitions": spec.partitions,
                "replicas": spec.replication,
                "topicConfiguration": policy,
                "bindingVersion": BINDING,
            }
        },
    }


def _operations(config: Config) -> Iterator[tuple[str, Part]]:
    for role in get_args(Role):
        for topic in config.inputs(role):
            group = {"type": "string", "default": config.group(role)}
            kafka = {"groupId": group, "bindingVersion": BINDING}
            yield (
                f"{role}-receives-{topic}",
                {**_operation("receive", topic), "bindings": {"kafka": kafka}},
            )
        # with a time budget
        announced = [schemas.Control.TOPIC] if role == "model" else []
        for topic in (*WRITES[role], *announced, *EVERY_ROLE_WRITES):
            yield f"{role}-sends-{topic}", _operation("send", topic)


def _operation(action: str, topic: str) -> Part:
    return {"action": action, "channel": {"$ref": f"#/channels/{topic}"}}


def _message(kind: type[schemas.Record], more: Mapping[str, str] | None = None) -> Part:
    summary, _, _ = (inspect.getdoc(kind) or "").partition("\n")
    headers = {
        name: {"type": "string", "description": meaning}
        for name, meaning in {**HEADERS.get(kind, {}), **(more or {})}.items()
    }
    key = {"type": ["string", "null"], "description": KEYS[kind]}
    return {
        "title": kind.__name__,
        "summary": summary,
        "contentType": "application/json",
        **({"headers": {"type": "object", "properties": headers}} if headers else {}),
        "payload": {
            "schemaFormat": SCHEMA_FORMAT,
            "schema": {"$ref": f"./{schema_path(kind).name}"},
        },
        "bindings": {"kafka": {"key": key, "bindingVersion": BINDING}},
    }
