"""The second stage: increments, gaps, beginnings, and what it cannot use."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.explain.losses import squared_error
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.schemas import (
    BadRecordError,
    Change,
    DeadLetter,
    Evaluation,
    Explanation,
    Prediction,
    Record,
)
from fluxplain.schemas.methods import Method
from fluxplain.stages import DriftStage, ExplainerStage, ModelStage
from tests.kit import stages
from tests.kit import support as kit

CONFIG = kit.linear_config(explain={"emit_every": 1})
RECORDS = kit.linear_records(50)
MESSAGES = kit.messages_of(RECORDS)
PUBLISHED = stages.modelled(CONFIG, RECORDS)
EVALUATIONS = kit.by_feature(PUBLISHED)
A = EVALUATIONS["a"]
METHODS: tuple[Method, ...] = ("ipfi", "isage", "ipdp")


def explained(evaluations: list[Evaluation], **explain: Any) -> list[Record]:
    """Return what a fresh stage publishes for these evaluations."""
    return stages.explained(kit.linear_config(explain={"emit_every": 1, **explain}), evaluations)


def of_method(records: list[Record], method: Method) -> list[Explanation]:
    return [e for e in kit.of_kind(records, Explanation) if e.method == method]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_efficiency_the_published_isage_increments_sum_to_the_gain_over_the_mean(
    task: str,
) -> None:
    """The mean prediction is the exponential mean of what the predictions say."""
    if task == "regression":
        config, messages = CONFIG, MESSAGES
    else:
        config = kit.make_config(explain={"loss": "brier", "emit_every": 1})
        messages = kit.observations(kit.agrawal(80))
    records = kit.run(ModelStage(config, kit.STREAM), messages)
    published = stages.explained(config, kit.of_kind(records, Evaluation))
    gains: dict[int, float] = {}
    known = {label: ExponentialMeans(1, config.explain.alphas) for label in (0, 1)}
    mean = ExponentialMeans(1, config.explain.alphas)
    for p in kit.of_kind(records, Prediction):
        assert p.loss is not None
        assert p.y is not None
        if task == "regression":
            mean.update(np.array([[float(p.prediction or 0.0)]]))
            gains[p.seq] = squared_error(p.y, mean.values.item()) - p.loss
            continue
        probabilities = dict(zip(p.classes or [], p.probabilities or [], strict=True))
        for label, each in known.items():
            each.update(np.array([[probabilities.get(label, 0.0)]]))
        before = sum((each.values.item() - (label == p.y)) ** 2 for label, each in known.items())
        gains[p.seq] = before - p.loss
    sums: dict[int, float] = {}
    for e in of_method(published, "isage"):
        [seq], [increment] = e.seqs, e.increments
        sums[seq] = sums.get(seq, 0.0) + increment
    assert list(sums) == list(gains)[20 if task == "classification" else 5 :]
    assert sums == pytest.approx({seq: gains[seq] for seq in sums}, rel=1e-9, abs=1e-9)


def test_ipfi_is_the_smoothed_mean_difference_of_losses() -> None:
    reach = 2 * CONFIG.explain.of("ipfi").reservoir_size
    estimate = ExponentialMeans(1, CONFIG.explain.alphas, reach=reach)
    for each, e in zip(A, of_method(explained(A), "ipfi"), strict=True):
        [y], [prediction], [rows] = each.y, each.prediction, each.outputs["ipfi"]
        assert y is not None
        assert isinstance(prediction, float)
        assert rows is not None
        losses = [squared_error(y, row) for row in rows if isinstance(row, float)]
        [lost] = each.loss
        assert lost is not None
        estimate.update(np.array([[sum(losses) / len(losses) - lost]]))
        told = estimate.values.item(), estimate.std_errors.item(), estimate.n
        found = e.value, math.inf if e.std_error is None else e.std_error, e.updates
        assert found == pytest.approx(told, rel=1e-12)
        assert e.alpha == CONFIG.explain.alpha


def test_several_smoothing_rates_give_the_explanations_of_each_side_by_side() -> None:
    rates = [CONFIG.explain.alphas[0], 1.0, 0.002]
    records = stages.modelled(kit.linear_config(explain={"alpha": rates}), RECORDS)
    assert kit.encoded(records) == kit.encoded(PUBLISHED), "the answers are those of the first"
    evaluations = [each for runs in EVALUATIONS.values() for each in runs]
    published = kit.of_kind(explained(evaluations, alpha=rates, emit_every=7), Explanation)
    for alpha in rates:
        alone = explained(evaluations, alpha=alpha, emit_every=7)
        assert kit.encoded(e for e in published if e.alpha == alpha) == kit.encoded(alone)
    assert [e.alpha for e in published[:6]] == rates * 2, "in the order of the configuration"
    assert {(e.feature, e.method) for e in published} == {(f, m) for f in "abc" for m in METHODS}


@kit.SLOW_PROPERTY
@given(st.integers(1, 20))
def test_emitting_rarely_loses_no_increment(emit_every: int) -> None:
    every = explained(A)
    rarely = explained(A, emit_every=emit_every)
    for method in METHODS:
        all_of_them = of_method(every, method)
        some = of_method(rarely, method)
        assert all(len(e.seqs) == len(e.increments) == emit_every for e in some)
        seqs = [seq for e in some for seq in e.seqs]
        increments = [v for e in some for v in e.increments]
        assert seqs == [e.seq for e in all_of_them][: len(seqs)]
        assert increments == [e.increments[0] for e in all_of_them][: len(seqs)]
        trends = [v for e in some for v in e.trends or []]
        assert trends == [v for e in all_of_them for v in e.trends or []][: len(trends)]
        assert len(trends) == (len(seqs) if method == "ipdp" else 0)
        # the estimates are those at the same seq
        values = {e.seq: (e.value, e.std_error, e.updates) for e in all_of_them}
        assert all(values[e.seq] == (e.value, e.std_error, e.updates) for e in some)
        # each says which one came before it
        before: list[int | None] = [None, *(e.seq for e in some)]
        assert [e.previous_seq for e in some] == before[: len(some)]


def test_a_progress_marker_of_ipdp_has_no_trends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxplain.stages.explainer_stage.SILENCE", 3)
    silent = [with_answers(each, ipdp=None, ipdp_points=None) for each in A[20:24]]
    found = of_method(explained([*A[:20], *silent], methods=["ipdp"]), "ipdp")
    assert [(e.seqs, e.increments, e.trends) for e in found[20:]] == [([], [], [])]


def test_a_gap_in_the_evaluations_is_published_and_the_estimates_continue() -> None:
    gap = explained([*A[:10], *A[15:]])
    [change] = kit.of_kind(gap, Change)
    assert (change.kind, change.feature, change.stream) == ("gap", "a", kit.STREAM)
    assert change.seq == A[15].seqs[0]
    assert str(A[9].seqs[-1]) in change.detail
    # it comes at the place where the gap is
    assert gap.index(change) == 10 * len(METHODS)
    whole = explained(A)
    assert of_method(gap, "ipfi")[:10] == of_method(whole, "ipfi")[:10]
    assert of_method(gap, "ipfi")[-1].updates == len(A) - 5


def test_a_missing_beginning_is_a_gap() -> None:
    [change] = kit.of_kind(explained(A[3:]), Change)
    assert (change.kind, change.previous_seq, change.seq) == ("gap", None, A[3].seqs[0])
    assert "its beginning" in change.detail


def test_dead_letters_in_between_are_no_gap() -> None:
    values = [*RECORDS[:20], b"oops", *RECORDS[20:]]
    evaluations = kit.by_feature(stages.modelled(CONFIG, values))["a"]
    assert 20 not in [seq for e in evaluations for seq in e.seqs]
    assert kit.of_kind(explained(evaluations), Change) == []


@pytest.mark.slow
@kit.PROPERTY
@given(st.integers(1, len(A) - 1))
def test_a_run_without_a_predecessor_restarts_the_estimates(cut: int) -> None:
    """What comes after it is what a fresh stage makes of it."""
    anew = [replace(A[cut], previous_seq=None), *A[cut + 1 :]]
    published = explained([*A[:cut], *anew])
    assert kit.encoded(published) == kit.encoded(explained(A[:cut])) + kit.encoded(explained(anew))


def test_a_beginning_that_comes_again_is_no_new_beginning() -> None:
    assert kit.encoded(explained([*A[:10], *A])) == kit.encoded(explained(A))


def test_a_feature_that_is_not_configured_is_refused() -> None:
    letter = stages.only_letter(explained([replace(A[0], feature="zzz")]))
    assert "feature 'zzz' is not configured" in letter.reason


def with_answers(run_: Evaluation, **columns: Any) -> Evaluation:
    """Return a run of one with other answers."""
    fields: dict[str, Any] = {name: [value] for name, value in columns.items()}
    outputs: dict[Any, Any] = {
        **run_.outputs,
        **{each: fields.pop(each) for each in METHODS if each in fields},
    }
    points: dict[Any, Any] = {"ipdp": fields.pop("ipdp_points", run_.points["ipdp"])}
    return replace(run_, outputs=outputs, points=points, **fields)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"ipfi": [1e200]}, "not finite"),
        ({"isage": [1e200, 0.0]}, "not finite"),
        # its square overflows, and with it the variance, for ever
        ({"ipfi": [1e90]}, "not finite"),
        ({"isage": [1e90, 0.0]}, "not finite"),
        ({"ipdp": [1e300, 0.0, -1e300]}, "not finite"),
        ({"ipdp": [1e160, 0.0, 0.0]}, "not finite"),
        ({"ipdp": [0.0]}, "1 outputs do not fit a curve of 3 points"),
        ({"ipfi": [[0.5, 0.5]]}, "are not all alike"),
        ({"isage": [[0.5], 1.0]}, "are not all alike"),
        ({"isage": [0.5]}, "the outputs before and after"),
        ({"ipdp": [[0.5], 0.0, 0.0]}, "are not all alike"),
    ],
)
def test_what_cannot_be_explained_is_one_dead_letter_and_changes_no_estimate(
    columns: dict[str, Any], reason: str
) -> None:
    """All or none of the methods take an observation."""
    middle = with_answers(A[20], **columns)
    joined = stages.merged([A[19], middle, A[21]])
    published = explained([*A[:19], joined, *A[22:]])
    [letter] = kit.of_kind(published, DeadLetter)
    seq = A[20].seqs[0]
    assert letter.reason.startswith("cannot explain a: ")
    assert reason in letter.reason
    assert (letter.stream, letter.seq, letter.key) == (kit.STREAM, seq, "a")
    assert (letter.topic, letter.partition, letter.offset) == ("fluxplain.features", 0, seq)
    assert Evaluation.decode(letter.original()) == middle
    # wherever the run is cut, the letter is the same
    alone = explained([*A[:19], A[19], middle, A[21], *A[22:]])
    assert kit.of_kind(alone, DeadLetter) == [letter]
    assert {e.seq for e in kit.of_kind(published, Explanation)} == {e.seqs[0] for e in A} - {seq}
    # the same as if its answers had never been there
    absent = with_answers(A[20], ipfi=None, isage=None, ipdp=None, ipdp_points=None)
    without = explained([*A[:20], absent, *A[21:]])
    assert kit.of_kind(published, Explanation) == kit.of_kind(without, Explanation)
    for e in kit.of_kind(published, Explanation):
        assert math.isfinite(e.value)
        assert e.std_error is None or math.isfinite(e.std_error)


def test_the_dead_letter_of_numbers_that_json_has_not_can_be_read_again() -> None:
    outputs: dict[Any, Any] = {**A[20].outputs, "ipfi": np.array([[math.nan]])}
    bad = replace(A[20], outputs=outputs)
    *before, last = kit.passed_on(A[:21])
    published = kit.run(ExplainerStage(CONFIG), [*before, replace(last, value=bad.packed())])
    [letter] = kit.of_kind(published, DeadLetter)
    again = Evaluation.decode(letter.original())
    assert np.isnan(np.array(again.outputs["ipfi"])).all()
    assert again.outputs["isage"] == A[20].outputs["isage"]


def test_an_unusable_first_observation_leaves_a_fresh_state() -> None:
    bad = with_answers(A[0], ipdp=[[0.5], 0.0, 0.0])
    published = kit.of_kind(explained([bad, *A[1:]]), Explanation)
    absent = with_answers(A[0], ipfi=None, isage=None, ipdp=None, ipdp_points=None)
    assert published == kit.of_kind(explained([absent, *A[1:]]), Explanation)


def test_runs_that_are_none_are_refused() -> None:
    empty = replace(A[0], seqs=[], ts=[], y=[], prediction=[], outputs={}, points={})
    for bad in (replace(A[0], ts=[1, 2]), empty):
        letter = stages.only_letter(explained([bad]))
        assert "the lists must be as long as seqs" in letter.reason
    with pytest.raises(BadRecordError, match="tombstone"):
        Evaluation.decode(None)


def test_the_curve_of_more_than_two_classes_is_published_with_its_classes() -> None:
    rows = [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]
    config = kit.linear_config(
        label={"type": "string"}, explain={"emit_every": 1, "loss": "brier", "methods": ["ipdp"]}
    )
    each = replace(
        with_answers(A[0], ipfi=None, isage=None, ipdp=rows, prediction=rows[0], y="x"),
        classes=["x", "y", "z"],
    )
    [e] = kit.of_kind(stages.explained(config, [each]), Explanation)
    assert e.classes == ["x", "y", "z"]
    assert e.effect == [[0.2, 0.5, 0.1], [0.3, 0.3, 0.8], [0.5, 0.2, 0.1]]
    assert e.grid == each.points["ipdp"][0]


REGISTERED = Registered(
    lives={1, 4, 9, 10}, places={4: "explainer fluxplain.evaluations-1"}, adopted={9: {}}
)
"""A register in which number 9 is that of other versions."""


def across_versions(
    after: str, lives: Registered = REGISTERED
) -> tuple[list[Explanation], list[Record]]:
    """Return the explanations, and all records, if evaluations get another incarnation at 30."""
    stage = ExplainerStage(CONFIG)
    stage.lives = lives
    runs = [run if run.seqs[0] < 30 else replace(run, incarnation=after) for run in A]
    records = kit.run(stage, kit.passed_on(runs))
    return kit.of_kind(records, Explanation), records


def test_other_versions_of_the_same_model_keep_the_estimates() -> None:
    found, records = across_versions("9")
    whole = kit.of_kind(explained(A), Explanation)
    assert [replace(e, incarnation="1") for e in found] == whole
    assert {e.incarnation for e in found if e.seq >= 30} == {"9"}
    assert len(found) == len(records), "there is no gap"


STARTED_COLD = replace(REGISTERED, places={4: f"model {kit.STREAM}"})


@pytest.mark.parametrize(("after", "lives"), [("10", REGISTERED), ("9", STARTED_COLD)])
def test_another_model_keeps_no_estimates(after: str, lives: Registered) -> None:
    found, records = across_versions(after, lives)
    whole = kit.of_kind(explained(A), Explanation)
    assert [replace(e, incarnation="1") for e in found] != whole
    assert kit.of_kind(records, Change)[0].kind == "gap"


def test_explanations_lead_to_changes_of_the_same_stream_and_feature() -> None:
    sensitive = kit.linear_config(
        explain={"emit_every": 1},
        drift={"detector": "adwin", "min_effect": 0.0, "delta": 0.9, "grace_period": 3},
    )
    evaluations = kit.of_kind(stages.modelled(sensitive, kit.linear_records(150)), Evaluation)
    explanations = kit.of_kind(stages.explained(sensitive, evaluations), Explanation)
    known = {(e.feature, e.method, e.seq): e for e in explanations}
    changes = kit.of_kind(kit.run(DriftStage(sensitive), kit.passed_on(explanations)), Change)
    assert changes
    for change in changes:
        assert change.feature is not None
        assert change.method in METHODS
        e = known[change.feature, change.method, change.seq]
        assert (change.value, change.std_error, change.ts) == (e.value, e.std_error, e.ts)
