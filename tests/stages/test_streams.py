"""Streams with settings of their own, several in one partition of a stage's input."""

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation, Record, stream_name
from fluxplain.stages import (
    ByStream,
    DriftStage,
    ExplainerStage,
    Message,
    ModelStage,
    Stage,
    by_stream,
)
from tests.kit import support as kit
from tests.kit.settings import EAGER_DRIFT

CONFIG = kit.linear_config(
    drift=EAGER_DRIFT,
    streams={
        1: {
            "model": {"factory": f"{__name__}:Inverted"},
            "explain": {"alpha": [0.2, 0.02], "emit_every": 7, "loss": "absolute_error"},
            "drift": {"detector": "page_hinkley", "params": {"threshold": 1.0}},
        },
        2: {"explain": {"methods": ["isage"]}, "drift": {"incident_window": 5}},
    },
)

PARTITIONS = (0, 1, 2)


class Inverted(kit.Additive):
    """Another model."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return -super().predict_one(x)


STAGES: dict[str, Callable[[Config], Stage]] = {
    "explainer": lambda config: by_stream(config, ExplainerStage),
    "drift": lambda config: by_stream(config, DriftStage),
}


def values(partition: int) -> list[bytes | None]:
    return [kit.message(0, each).value for each in kit.linear_records(120, seed=partition)]


@cache
def alone(partition: int) -> list[Record]:
    """Return what the reference publishes for one stream; without the model role's changes."""
    records = LocalPipeline(CONFIG, partition).run(values(partition))
    return [
        each for each in records if not (isinstance(each, Change) and each.method in {"loss", None})
    ]


def mixed(streams: list[list[Record]]) -> list[Message]:
    """Return the records of several streams as they may stand in one partition."""
    rng = random.Random(5)
    turns = [i for i, records in enumerate(streams) for _ in records]
    rng.shuffle(turns)
    left = [iter(records) for records in streams]
    return kit.passed_on(next(left[i]) for i in turns)


@cache
def inputs_of(role: str) -> list[Message]:
    """Return what the role reads when all streams are in one partition of its input."""
    if role == "drift":
        return mixed([list(kit.of_kind(alone(each), Explanation)) for each in PARTITIONS])
    evaluations: list[list[Record]] = []
    for each in PARTITIONS:
        stage = ModelStage(CONFIG.of_stream(each), stream_name("fluxplain.features", each))
        read = [Message("fluxplain.features", each, i, None, v) for i, v in enumerate(values(each))]
        evaluations.append(list(kit.of_kind(kit.run(stage, read), Evaluation)))
    return mixed(evaluations)


@pytest.mark.parametrize("role", STAGES)
def test_each_stream_is_as_it_is_alone(role: str) -> None:
    published = kit.run(STAGES[role](CONFIG), inputs_of(role))
    assert not kit.of_kind(published, DeadLetter)
    for partition in PARTITIONS:
        stream = stream_name("fluxplain.features", partition)
        kind: type[Explanation | Change] = Explanation if role == "explainer" else Change
        expected = kit.encoded(kit.of_kind(alone(partition), kind))
        ours = kit.encoded(each for each in kit.of_kind(published, kind) if each.stream == stream)
        assert sorted(ours) == sorted(expected) != []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("role", STAGES)
def test_pickled_between_all_steps_it_publishes_the_same_bytes(role: str) -> None:
    inputs = inputs_of(role)[:300]
    published = kit.run_copies(STAGES[role](CONFIG), inputs)
    assert kit.encoded(published) == kit.encoded(kit.run(STAGES[role](CONFIG), inputs)) != []


@pytest.mark.parametrize("role", STAGES)
def test_what_is_of_no_stream_has_the_reason_that_the_stage_gives(role: str) -> None:
    value = inputs_of(role)[0].value or b""
    hostile = [
        kit.message(0, b"not JSON"),
        kit.message(1, value.replace(b"fluxplain.features-", b"elsewhere-")),
        kit.message(2, value, key=b"k" * 100_000),
        kit.message(3, value.replace(b'"feature":"', b'"feature":"no-')),
    ]
    plain = STAGES[role](kit.linear_config())
    letters = kit.run(STAGES[role](CONFIG), hostile)
    assert [letter.TOPIC for letter in letters] == ["dead-letters"] * 4
    assert kit.encoded(letters) == kit.encoded(kit.run(plain, hostile))


def test_without_settings_of_their_own_streams_have_one_stage() -> None:
    assert isinstance(by_stream(kit.linear_config(), DriftStage), DriftStage)
    assert isinstance(by_stream(CONFIG, DriftStage), ByStream)
