"""Whatever bytes are in an inbound topic, a stage publishes valid records and goes on."""

import random
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from fluxplain.schemas import BadRecordError, DeadLetter, Evaluation
from fluxplain.stages import Message, ModelStage, process
from tests.fuzz.models import LABELS
from tests.fuzz.pools import (
    CONFIGS,
    MAKERS,
    STREAM,
    assert_publishable,
    assert_readable,
    pool,
    refused,
)
from tests.fuzz.strategies import EXAMPLES, FUZZ, KEYS, SEEDS, anything, strained
from tests.kit.stages import as_arrays
from tests.kit.support import agrawal, make_config, message, pickled, published

KINDS = st.sampled_from(sorted(CONFIGS))


@FUZZ
@given(st.data(), KINDS, SEEDS)
def test_a_packed_run_is_that_of_its_lists(data: st.DataObject, kind: str, seed: int) -> None:
    records = pool("evaluations", kind).records
    rng = random.Random(seed)
    for value in [data.draw(anything(records)), *(strained(rng, records) for _ in range(6))]:
        try:
            run = Evaluation.decode(value)
        except BadRecordError:
            continue
        lists = Evaluation.decode(run.encode())
        assert Evaluation.decode(as_arrays(lists).packed()).encode() == run.encode()


def watched_config(label: str) -> Any:
    number = label == "number"
    return make_config(
        label={"type": label},
        model={
            "factory": f"tests.fuzz.models:{'WatchfulOfNumbers' if number else 'Watchful'}",
            "params": {} if number else {"label": label},
        },
        explain={
            "loss": "absolute_error" if number else "brier",
            "ipfi": {"reservoir_size": 2},
            "isage": {"reservoir_size": 2, "inner_samples": 1},
            "ipdp": {"storage_size": 2, "grid_size": 2},
        },
    )


WATCHED = {label: watched_config(label) for label in LABELS}
OBSERVATIONS = [
    {"x": dict(x), "y": LABELS[label](y), "id": i, "ts": "now"}
    for label in LABELS
    for i, (x, y) in enumerate(agrawal(4))
]


@FUZZ
@given(st.sampled_from(sorted(LABELS)), st.lists(anything(OBSERVATIONS), max_size=8), SEEDS)
def test_the_model_is_given_the_configured_features_and_types_and_nothing_else(
    label: str, values: list[bytes | None], seed: int
) -> None:
    """Features in the configured order, finite numbers, categories, labels of the one type."""
    stage = ModelStage(WATCHED[label], STREAM)
    good = [orjson.dumps(each) for each in OBSERVATIONS if type(each["y"]) is LABELS[label]]
    rng = random.Random(seed)
    likely = [strained(rng, OBSERVATIONS) for _ in range(8)]
    for offset, value in enumerate([*good, *values, *likely, *good]):
        process(stage, message(offset, value))
    model = stage.model
    assert model.complaints == []
    assert model.taught >= 2 * len(good)


MANY_STEPS = settings(FUZZ, stateful_step_count=25, max_examples=EXAMPLES or 25)


class Reading(RuleBasedStateMachine):
    """A stage reads good messages; between them come bad ones, others' ones, and crashes.

    All that it publishes is valid. A twin reads what is not refused, of the one stream, and nothing
    else.
    """

    topic: ClassVar[str]

    @initialize(kind=KINDS)
    def start(self, kind: str) -> None:
        self.pool = pool(self.topic, kind)
        self.stage = self.pool.stage()
        self.twin = self.pool.stage()
        self.done = 0

    @rule()
    def read_a_good_one(self) -> None:
        if self.done < len(self.pool.rest):
            incoming = self.pool.rest[self.done]
            self.done += 1
            records = published(self.stage, incoming)
            assert_readable(records)
            assert records == published(self.twin, incoming)

    @rule(data=st.data(), key=KEYS)
    def read_anything(self, data: st.DataObject, key: bytes | None) -> None:
        self._read(data.draw(anything(self.pool.records)), key)

    @rule(seed=SEEDS)
    def read_what_is_nearly_right(self, seed: int) -> None:
        self._read(strained(random.Random(seed), self.pool.records), b"k")

    def _read(self, value: bytes | None, key: bytes | None) -> None:
        incoming = Message(self.topic, 0, self._offset(), key, value)
        bad = refused(self.stage, incoming)
        records = published(self.stage, incoming)
        assert_publishable(records, key)
        if bad:
            [letter] = records
            assert isinstance(letter, DeadLetter)
            assert letter.original() == value
        else:
            assert records == published(self.twin, incoming)

    @rule(seed=SEEDS)
    def read_what_is_of_another_stream(self, seed: int) -> None:
        foreign = _renamed(strained(random.Random(seed), self.pool.records))
        if self.topic != "features":  # a model has one stream
            process(self.stage, Message(self.topic, 0, self._offset(), b"k", foreign))

    @rule()
    def read_the_last_good_one_again(self) -> None:
        if self.topic != "features" and self.done:
            assert [*process(self.stage, self.pool.rest[self.done - 1])] == []

    @rule()
    def crash_after_a_checkpoint(self) -> None:
        self.stage = pickled(self.stage)

    def _offset(self) -> int:
        return self.pool.rest[0].offset - 1 + 2 * self.done


def _renamed(value: bytes) -> bytes:
    """Return the message as one of another stream."""
    return orjson.dumps({**orjson.loads(value), "stream": "fluxplain.features-7"})


@pytest.mark.parametrize("topic", MAKERS)
def test_whatever_comes_a_stage_publishes_valid_records_and_the_same_for_good_ones(
    topic: str,
) -> None:
    machine = type("ReadingTopic", (Reading,), {"topic": topic})
    run_state_machine_as_test(machine, settings=MANY_STEPS)
