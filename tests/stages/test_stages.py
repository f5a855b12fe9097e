"""What all stages promise: determinism, pickling anywhere, nothing counted twice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Change, Evaluation, Explanation, Prediction, Record
from fluxplain.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage, process
from fluxplain.stages.evaluated import Evaluated, evaluations
from tests.kit import support as kit
from tests.kit.settings import EAGER_DRIFT
from tests.kit.stages import explained, explanations, merged, modelled

CONFIG = kit.make_config(
    explain={"emit_every": 1},
    drift={**EAGER_DRIFT, "signal": "value"},
)
LINEAR = kit.linear_config()
MESSAGES = kit.observations(kit.agrawal_with_drift(240, at=120))
LINEAR_RECORDS = kit.linear_records(150)
LINEAR_MESSAGES = kit.messages_of(LINEAR_RECORDS)
# both watch so sensitively that changes are part of what is compared
SENSITIVE = kit.linear_config(
    drift={
        **EAGER_DRIFT,
        "isage": {"detector": "page_hinkley", "params": {"threshold": 1.0}},
        "ipdp": {"detector": "kswin", "params": {"window_size": 40, "stat_size": 15}},
    }
)

STAGES: dict[str, Callable[[Config], Stage]] = {
    "model": lambda config: ModelStage(config, kit.STREAM),
    "explainer": ExplainerStage,
    "drift": DriftStage,
}


@cache
def inputs_of(name: str, stream: str) -> list[Message]:
    """Return what the stage of that name reads when the observations are these."""
    config, messages = STREAMS[stream]
    if name == "model":
        return messages
    if name == "explainer":
        return kit.passed_on(
            kit.of_kind(kit.run(ModelStage(config, kit.STREAM), messages), Evaluation)
        )
    read = inputs_of("explainer", stream)
    return kit.passed_on(kit.of_kind(kit.run(ExplainerStage(config), read), Explanation))


STREAMS = {"agrawal": (CONFIG, MESSAGES), "linear": (SENSITIVE, LINEAR_MESSAGES)}

every_stage = pytest.mark.parametrize("name", STAGES)
both_streams = pytest.mark.parametrize(
    "stream", ["linear", pytest.param("agrawal", marks=pytest.mark.slow)]
)


@pytest.mark.sampled(1)
@every_stage
@both_streams
def test_pickled_between_all_steps_a_stage_publishes_the_same_bytes(name: str, stream: str) -> None:
    config, inputs = STREAMS[stream][0], inputs_of(name, stream)
    # the long stream takes a while to pickle: every 16th of its steps
    every = 16 if config is CONFIG else 1
    expected = kit.run(STAGES[name](config), inputs)
    stage, published = STAGES[name](config), list[Record]()
    for i, each in enumerate(inputs):
        if i % every == 0:
            stage = kit.pickled(stage)
        published += kit.published(stage, each)
    assert kit.encoded(published) == kit.encoded(expected) != []


@both_streams
def test_the_stages_in_a_row_are_the_local_pipeline(stream: str) -> None:
    config, messages = STREAMS[stream]
    modelled = kit.run(ModelStage(config, kit.STREAM), messages)
    predictions, of_model = kit.of_kind(modelled, Prediction), kit.of_kind(modelled, Change)
    explanations = kit.run(ExplainerStage(config), inputs_of("explainer", stream))
    changes = kit.run(DriftStage(config), inputs_of("drift", stream))
    local = list(LocalPipeline(config).run([m.value for m in messages]))
    assert kit.of_kind(local, Prediction) == predictions
    assert kit.of_kind(local, Explanation) == explanations
    published = kit.of_kind(local, Change)
    assert [change for change in published if change.method not in {"loss", None}] == changes
    assert [change for change in published if change.method in {"loss", None}] == of_model
    told = len(predictions) + len(of_model)
    assert len(local) == told + len(explanations) + len(changes)
    assert changes
    assert of_model


def test_another_stream_or_seed_draws_other_numbers() -> None:
    published = [
        kit.encoded(kit.of_kind(kit.run(ModelStage(config, stream), LINEAR_MESSAGES), Evaluation))
        for config, stream in (
            (LINEAR, "features-0"),
            (LINEAR, "features-1"),
            (kit.linear_config(seed=7), "features-0"),
        )
    ]
    without_names = [[b.replace(b"features-1", b"features-0") for b in p] for p in published]
    assert without_names[0] != without_names[1]
    assert without_names[0] != without_names[2]


@pytest.mark.parametrize("method", ["ipfi", "isage", "ipdp"])
def test_switching_a_method_off_changes_no_other(method: str) -> None:
    rest = [m for m in ("ipfi", "isage", "ipdp") if m != method]
    reduced = explanations(kit.linear_config(explain={"methods": rest}), LINEAR_RECORDS)
    assert reduced == [e for e in explanations(LINEAR, LINEAR_RECORDS) if e.method != method]


EVALUATIONS = kit.by_feature(modelled(LINEAR, LINEAR_RECORDS))["a"]
EXPECTED = kit.encoded(explained(LINEAR, EVALUATIONS))

RUN_LENGTHS = st.lists(st.integers(1, 20), min_size=1, max_size=60)


@kit.PROPERTY
@given(RUN_LENGTHS, RUN_LENGTHS, st.integers(0, 145), st.integers(0, 145))
def test_runs_that_come_again_in_other_cuts_after_a_crash_count_once(
    lengths: list[int], again: list[int], back_to: int, crash: int
) -> None:
    """A producer that starts again from an older checkpoint, with other things waiting."""
    crash = max(1, crash)
    first = [merged(part) for part in kit.chunks(EVALUATIONS[:crash], lengths)]
    second = [merged(part) for part in kit.chunks(EVALUATIONS[min(back_to, crash) :], again)]
    assert kit.encoded(explained(LINEAR, [*first, *second])) == EXPECTED


@kit.PROPERTY
@given(RUN_LENGTHS)
def test_a_run_taken_apart_is_what_it_was_made_of(lengths: list[int]) -> None:
    parts = [merged(part) for part in kit.chunks(EVALUATIONS, lengths)]
    assert all(later.previous_seq == p.seqs[-1] for p, later in pairwise(parts))
    singles = [p.single(i) for p in parts for i in range(len(p.seqs))]
    assert singles == EVALUATIONS


LINEAR_STAGE = ModelStage(LINEAR, kit.STREAM)

ANSWERS = [
    record
    for message in LINEAR_MESSAGES
    for record in process(LINEAR_STAGE, message)
    if isinstance(record, Evaluated)
]


@pytest.mark.slow
@kit.PROPERTY
@given(RUN_LENGTHS)
def test_runs_of_answers_are_the_evaluations_of_each_observation(lengths: list[int]) -> None:
    parts = [list(evaluations(part)) for part in kit.chunks(ANSWERS, lengths)]
    singles = [p.single(i) for part in parts for p in part for i in range(len(p.seqs))]
    assert sorted(kit.encoded(singles)) == sorted(kit.encoded(kit.singles(ANSWERS)))
    longest = max(len(p.seqs) for part in parts for p in part)
    assert longest == max(map(len, kit.chunks(ANSWERS, lengths))), "nothing splits these runs"


def test_only_what_follows_is_appended() -> None:
    one, two, three = ANSWERS[10:13]
    [name, *others] = one.classes

    def lengths(*run: Evaluated) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for each in evaluations(run):
            found.setdefault(each.feature, []).append(len(each.seqs))
        return found

    assert lengths(one, two, three) == {key: [3] for key in one.classes}
    assert lengths(one, three) == {key: [1, 1] for key in one.classes}
    assert lengths(one, replace(two, model_version="2")) == {key: [1, 1] for key in one.classes}
    assert lengths(one, replace(two, incarnation="2")) == {key: [1, 1] for key in one.classes}
    ahead = replace(two, previous_seqs={**two.previous_seqs, name: two.seq - 2})
    assert lengths(one, ahead) == {name: [1, 1], **{key: [2] for key in others}}
    grown = replace(two, classes={**two.classes, name: (*two.classes[name], "new")})
    assert lengths(one, grown)[name] == [1, 1]


EXPLANATIONS = kit.of_kind(
    kit.run(ExplainerStage(SENSITIVE), inputs_of("explainer", "linear")), Explanation
)
CHANGES = kit.encoded(kit.run(DriftStage(SENSITIVE), kit.passed_on(EXPLANATIONS)))


def test_streams_and_features_in_one_partition_do_not_mix() -> None:
    """The order between keys means nothing: each gets what it gets alone."""

    def named(stream: str, records: Sequence[Any]) -> list[Any]:
        return [replace(record, stream=stream) for record in records]

    neighbour = "fluxplain.features-1"
    other = named(neighbour, EXPLANATIONS)
    mixed = [e for pair in zip(EXPLANATIONS, other, strict=True) for e in pair]
    published = kit.of_kind(kit.run(DriftStage(SENSITIVE), kit.passed_on(mixed)), Change)
    assert kit.encoded(c for c in published if c.stream == kit.STREAM) == CHANGES
    alone = kit.encoded(kit.run(DriftStage(SENSITIVE), kit.passed_on(other)))
    assert kit.encoded(c for c in published if c.stream == neighbour) == alone
