"""Good messages of every inbound topic, stages that have read some, and what holds for those."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jsonschema
import orjson

from fluxplain.config import Config
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.schemas import RECORDS, BadRecordError, DeadLetter, Evaluation, Explanation, Record
from fluxplain.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage
from tests.kit.settings import EAGER_DRIFT
from tests.kit.stages import as_arrays
from tests.kit.support import (
    agrawal_with_drift,
    linear_config,
    linear_records,
    make_config,
    messages_of,
    observations,
    of_kind,
    passed_on,
    pickled,
    run,
)

STREAM = "fluxplain.features-0"

REASONS = {"enabled": True, "reservoir_size": 5, "most_inputs": 50}

REGRESSION = linear_config(
    reasons=REASONS,
    explain={"ipdp": {"storage_size": 5, "grid_size": 3, "pairs": [["a", "c"]], "ice": 2}},
    drift={
        **EAGER_DRIFT,
        "ipfi": {"detector": "page_hinkley", "params": {"threshold": 1.0, "min_instances": 5}},
        "ipdp": {"detector": "kswin", "params": {"window_size": 20, "stat_size": 8}},
    },
)

CLASSES = make_config(
    reasons={**REASONS, "labels": "all"},
    model={"factory": "tests.fuzz.models:Watchful", "params": {}},
    explain={
        "emit_every": 2,
        "ipfi": {"reservoir_size": 5},
        "isage": {"reservoir_size": 5},
        "ipdp": {"storage_size": 5, "grid_size": 3},
    },
    drift={**EAGER_DRIFT, "signal": "value"},
)

MAKERS: dict[str, Callable[[Config], Stage]] = {
    "features": lambda config: ModelStage(config, STREAM),
    "evaluations": ExplainerStage,
    "explanations": DriftStage,
}
"""Inbound topic → makes the stage that reads it."""

CONFIGS = {"regression": REGRESSION, "classes": CLASSES}


@dataclass(frozen=True)
class Pool:
    """Good messages of one topic, of which the stage has read the first part.

    The offsets are even: between any two there is room for something else.
    """

    topic: str
    config: Config
    read: list[Message]
    rest: list[Message]
    pickled_stage: Stage

    @property
    def records(self) -> list[dict[str, Any]]:
        """What the messages hold, to be altered."""
        return [orjson.loads(m.value or b"") for m in [*self.read[-12:], *self.rest]]

    def stage(self) -> Stage:
        """Return the stage as it is after the first part."""
        return pickled(self.pickled_stage)


@cache
def pool(topic: str, kind: str) -> Pool:
    """Return the pool of one inbound topic, for a regression or for classes."""
    config = CONFIGS[kind]
    messages = _messages(topic, kind)
    messages = [
        Message(m.topic, m.partition, 2 * i, m.key, m.value) for i, m in enumerate(messages)
    ]
    half = len(messages) - 12
    stage = MAKERS[topic](config)
    run(stage, messages[:half])
    return Pool(topic, config, messages[:half], messages[half:], stage)


@cache
def _messages(topic: str, kind: str) -> list[Message]:
    if topic == "features":
        if kind == "regression":
            return messages_of(linear_records(45))
        return observations(agrawal_with_drift(45, at=25))
    config = CONFIGS[kind]
    if topic == "evaluations":
        published = run(ModelStage(config, STREAM), _messages("features", kind))
        runs = of_kind(published, Evaluation)
        packs = [i % 2 == 0 for i in range(len(runs))][::-1]  # not the first one that is unread
        return [
            replace(each, value=as_arrays(r).packed()) if is_packed else each
            for each, r, is_packed in zip(passed_on(runs), runs, packs, strict=True)
        ]
    published = run(ExplainerStage(config), _messages("evaluations", kind))
    return passed_on(of_kind(published, Explanation))


@cache
def validators() -> dict[type[Record], jsonschema.Draft202012Validator]:
    return {kind: jsonschema.Draft202012Validator(kind.json_schema()) for kind in RECORDS}


def assert_publishable(records: Sequence[Record], source_key: bytes | None = None) -> None:
    """Every record fits into a message, is as its schema says, and can be read."""
    assert_readable(records, source_key)
    for record in records:
        validators()[type(record)].validate(orjson.loads(record.encode()))


def assert_refused(records: Sequence[Record], reason: str) -> None:
    """There is nothing but a dead letter, with this in its reason."""
    [letter] = records
    assert isinstance(letter, DeadLetter)
    assert reason in letter.reason
    assert_publishable(records)


def assert_readable(records: Sequence[Record], source_key: bytes | None = None) -> None:
    """Every record fits into a message, with its key, and comes back as it is."""
    for record in records:
        value, key = record.encode(), record.message_key()
        key_bytes = (source_key or b"") if key is None else key.encode()
        assert len(value) + len(key_bytes) < MAX_MESSAGE_BYTES
        assert type(record).decode(value).encode() == value


def refused(stage: Stage, message: Message) -> bool:
    """Whether the message cannot be used, for what its bytes are."""
    try:
        stage.decode(message)
    except BadRecordError:
        return True
    return False
