"""No valid record becomes a message that no broker takes, and slow starters are waited for."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Prediction
from tests.kit import support as kit
from tests.kit.settings import SETTINGS
from tests.kit.stages import explained, modelled, only_letter
from tests.kit.streams import observations


def changed(**fields: Any) -> bytes:
    """An observation in which something is too long."""
    observation = orjson.loads(observations(1)[0])
    for name, value in fields.items():
        if name in observation["x"]:
            observation["x"][name] = value
        else:
            observation[name] = value
    return orjson.dumps(observation)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (changed(id="i" * 999_800), "id has 999,800 characters"),
        (changed(ts="t" * 5_000), "ts has 5,000 characters"),
        (changed(car="c" * 20_000), "x.car has 20,000 characters"),
        (orjson.dumps({"x": {"f" * 980_000: {"nested": 1}}}), "…"),
    ],
)
def test_a_record_that_is_too_long_goes_to_dead_letters(record: bytes, reason: str) -> None:
    pipeline = LocalPipeline(Config(**SETTINGS))
    letter = only_letter(pipeline.step(0, record))
    assert reason in letter.reason
    assert len(letter.encode()) < MAX_MESSAGE_BYTES


@pytest.mark.slow
def test_answers_that_fill_no_message_go_to_dead_letters() -> None:
    ipdp = {"grid_size": 1000, "storage_size": 5}
    settings = {
        "explain": {**SETTINGS["explain"], "methods": ["ipdp"], "ipdp": ipdp},
        "label": {"type": "integer"},
        "features": {"salary": "numeric"},
        "model": {"factory": "river.naive_bayes:GaussianNB"},
    }
    pipeline = LocalPipeline(Config(**{**SETTINGS, **settings}))
    letters = []
    for seq, value in enumerate(observations(45)):
        fields = orjson.loads(value)
        fields["y"] = seq  # a new class each time: soon a message cannot hold all of them
        records = pipeline.step(seq, orjson.dumps(fields))
        assert all(len(record.encode()) < MAX_MESSAGE_BYTES for record in records)
        letters += [record for record in records if isinstance(record, DeadLetter)]
    assert letters
    assert "take fewer grid points" in letters[0].reason


class Late:
    """Says nothing before it has learned."""

    def __init__(self) -> None:
        self.mean: float | None = None

    def predict_one(self, x: dict[str, Any]) -> float | None:
        return None if self.mean is None else self.mean + x["a"]

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.mean = y


def test_a_model_that_has_nothing_to_say_yet_learns_all_the_same() -> None:
    config = Config(
        features={"a": "numeric"},
        label={"type": "number"},
        model={"factory": "tests.stages.test_limits:Late"},
        explain={"loss": "squared_error"},
    )
    pipeline = LocalPipeline(config)
    [first] = pipeline.step(0, b'{"x": {"a": 1}, "y": 2}')
    [second] = pipeline.step(1, b'{"x": {"a": 1}, "y": 2}')
    assert isinstance(first, Prediction)
    assert isinstance(second, Prediction)
    assert (first.prediction, first.loss, first.classes) == (None, None, None)
    assert (second.prediction, second.loss) == (3.0, 1.0)


def test_the_library_waits_for_such_a_model_too() -> None:
    options: dict[str, Any] = {"warm_up": 1, "seed": 1}
    for kind in (IncrementalPFI, IncrementalSAGE):
        explainer = kind(Late(), ["a"], loss="squared_error", **options)
        for _ in range(2):
            assert explainer.explain_one({"a": 1.0}, 2.0) == {"a": 0.0}
    assert IncrementalPDP(Late(), ["a"], **options).explain_one({"a": 1.0}) == {"a": 0.0}


@pytest.mark.parametrize("value", ["text", 1e200])
def test_a_value_that_the_drift_role_would_refuse_is_refused_before_it_joins_others(
    value: Any,
) -> None:
    config = kit.linear_config()
    runs = kit.by_feature(modelled(config, kit.linear_records(20)))["a"]
    letter = explained(config, [replace(runs[-1], values=[value])])[-1]
    assert isinstance(letter, DeadLetter)
