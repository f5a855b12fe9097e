"""The third stage: changes, gaps, beginnings, and repeats."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.drift import ADWIN

from fluxplain.config import Config
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.schemas import Change, Explanation, Record
from fluxplain.schemas.methods import Method
from fluxplain.stages import DriftStage
from tests.kit import support as kit
from tests.kit.stages import only_letter

JUMP = 300


def config_of(*features: str, **settings: Any) -> Config:
    """Return settings of a single feature by default: waiting for others is tested elsewhere."""
    return kit.linear_config(features=dict.fromkeys(features or "a", "numeric"), **settings)


def increments(n: int = 600, seed: int = 1) -> list[float]:
    """Return noise whose mean rises by ten of its standard deviations at ``JUMP``."""
    rng = random.Random(seed)
    return [rng.gauss(0.0 if t < JUMP else 1.0, 0.1) for t in range(n)]


def explanation(seqs: list[int], values: list[float], previous_seq: int | None) -> Explanation:
    return Explanation(
        stream=kit.STREAM,
        feature="a",
        method="ipfi",
        seq=seqs[-1],
        previous_seq=previous_seq,
        ts=seqs[-1],
        alpha=0.05,
        updates=len(seqs),
        value=values[-1],
        std_error=0.1,
        seqs=seqs,
        increments=values,
    )


def explanations(values: list[float], every: int | list[int] = 1) -> list[Explanation]:
    """Return what the explainer publishes for these increments."""
    records: list[Explanation] = []
    lengths = [every] * len(values) if isinstance(every, int) else every
    for seqs in kit.chunks(range(len(values)), lengths):
        before = records[-1].seq if records else None
        records.append(explanation(list(seqs), [values[t] for t in seqs], before))
    return records


def changes(records: list[Explanation], **drift: Any) -> list[Change]:
    """Return what a fresh stage publishes; nothing but changes."""
    config = config_of(drift=drift)
    published = kit.run(DriftStage(config), kit.passed_on(records))
    assert len(kit.of_kind(published, Change)) == len(published)
    return kit.of_kind(published, Change)


def test_a_jump_of_the_increments_is_a_change_with_what_was_before_and_after() -> None:
    [change] = changes(explanations(increments()))
    assert (change.kind, change.feature, change.method) == ("drift", "a", "ipfi")
    assert (change.stream, change.signal, change.previous_seq) == (kit.STREAM, "increment", None)
    # ADWIN looks every 32 values, and needs few of these to be sure
    assert JUMP < change.seq <= JUMP + 64
    assert change.before == pytest.approx(0.0, abs=4.0 * 0.1 / JUMP**0.5)
    assert change.after == pytest.approx(1.0, abs=0.2)  # a few of those before may be among them
    assert change.after_seq is not None
    assert change.after_seq == pytest.approx(JUMP, abs=16)
    assert change.window == change.seq - change.after_seq + 1
    assert change.delay_bound is not None
    assert change.delay_bound >= change.seq - change.after_seq
    assert "risen" in change.detail


def test_changes_are_those_of_a_plain_adwin() -> None:
    values = increments()
    adwin, expected = ADWIN(delta=0.01, grace_period=5), []
    for t, v in enumerate(values):
        adwin.update(v)
        if adwin.drift_detected:
            expected.append(t)
    published = changes(
        explanations(values), detector="adwin", min_effect=0.0, delta=0.01, grace_period=5
    )
    assert [c.seq for c in published] == expected != []


def test_a_second_change_names_the_first() -> None:
    values = [*increments(), *reversed(increments())]
    first, *_, last = changes(explanations(values))
    assert first.previous_seq is None
    assert last.previous_seq is not None
    assert "fallen" in last.detail
    assert last.before == pytest.approx(1.0, abs=0.05), "the first change is no part of the second"


@kit.SLOW_PROPERTY
@given(st.lists(st.integers(1, 40), min_size=1, max_size=200))
def test_increments_give_the_same_changes_however_often_they_are_emitted(
    lengths: list[int],
) -> None:
    values = increments()
    # but what the explanation that shows it says, and where that ends
    rest: dict[str, Any] = {"ts": None, "value": None, "incident": None}
    found = [replace(c, **rest) for c in changes(explanations(values, lengths))]
    assert found == [replace(c, **rest) for c in changes(explanations(values))]


GLR: dict[str, Any] = {
    "detector": "glr",
    "params": {},
    "delta": None,
    "grace_period": None,
    "follow_up": 200,
}


def test_a_change_has_a_second_record_however_often_explanations_are_emitted() -> None:
    values = increments(900)
    noticed, confirmed = changes(explanations(values), **GLR)
    assert [noticed.status, confirmed.status] == ["noticed", "confirmed"]
    assert noticed.id == confirmed.id
    assert confirmed.status_seq == noticed.seq + 200
    assert confirmed.after == pytest.approx(1.0, abs=0.05)
    assert confirmed.detail.startswith("confirmed: iPFI of a rose from ")
    rest: dict[str, Any] = {"ts": None, "value": None, "incident": None}
    grouped = [replace(c, **rest) for c in changes(explanations(values, 7), **GLR)]
    assert grouped == [replace(c, **rest) for c in (noticed, confirmed)]


def reversed_trends() -> list[float]:
    """Return correlations near 1 that are near -1 after 400 observations, with noise."""
    rng = random.Random(1)
    return [(0.9 if t < 400 else -0.9) + rng.gauss(0.0, 0.05) for t in range(1_000)]


def with_trends(values: list[float]) -> list[Explanation]:
    """Return explanations by iPDP whose importance stays the same, with these trends."""
    rng = random.Random(2)
    steady = [1.0 + rng.gauss(0.0, 0.1) for _ in values]
    return [
        replace(e, method="ipdp", trends=[values[t] for t in e.seqs]) for e in explanations(steady)
    ]


def test_an_effect_that_reverses_is_a_change() -> None:
    noticed, confirmed = changes(with_trends(reversed_trends()), **GLR)
    assert (noticed.signal, noticed.method, noticed.feature) == ("trend", "ipdp", "a")
    assert noticed.before == pytest.approx(1.0, abs=0.1)
    assert confirmed.after == pytest.approx(-1.0, abs=0.1)
    assert "the effect of a has reversed" in confirmed.detail
    assert (noticed.rank_after, confirmed.status) == (None, "confirmed")


def test_a_trend_that_keeps_its_sign_is_none() -> None:
    weaker = [abs(trend) - 0.2 * (trend < 0.0) for trend in reversed_trends()]
    assert changes(with_trends(weaker), **GLR) == []


def test_a_curve_that_is_hardly_like_the_one_before_has_not_reversed() -> None:
    another = [max(trend, -0.4) for trend in reversed_trends()]
    assert changes(with_trends(another), **GLR) == []


def test_changes_of_trend_and_importance_at_one_seq_have_ids_of_their_own() -> None:
    trends = reversed_trends()
    records = [
        replace(e, increments=[2.0 - math.copysign(1.0, trends[t]) for t in e.seqs])
        for e in with_trends(trends)
    ]
    found = changes(records, **GLR)
    noticed = [c for c in found if c.status == "noticed"]
    assert {c.signal for c in noticed} == {"increment", "trend"}
    assert len({c.seq for c in noticed}) == 1
    later = kit.of_kind([Life(settings=2).of(c, "model") for c in found], Change)
    for each in (found, later):
        assert len({c.event_id for c in each}) == 4
        assert len({c.id for c in each}) == 2


def test_the_signal_may_be_the_smoothed_value() -> None:
    values = increments()
    records = [replace(e, increments=[0.0]) for e in explanations(values)]
    assert changes(records) == []
    [change] = changes(records, signal="value")
    assert change.signal == "value"
    assert JUMP < change.seq <= JUMP + 64


def of_methods(drift: dict[str, Any]) -> list[Change]:
    """Return the changes when all methods have the same increments."""
    methods: list[Method] = ["ipfi", "isage", "ipdp"]
    records = [replace(e, method=m) for e in explanations(increments()) for m in methods]
    return changes(records, **drift)


def test_each_method_has_the_settings_of_its_own_or_the_common_ones() -> None:
    own = {"detector": "adwin", "params": {"min_window_length": 90}, "delta": 0.01}
    found = of_methods(
        {"isage": own, "ipdp": {"detector": "adwin", "signal": "value", "delta": 1e-9}}
    )
    [ipfi], [isage], [ipdp] = (
        [c for c in found if c.method == method] for method in ("ipfi", "isage", "ipdp")
    )
    # both need more values than the common settings
    assert JUMP < ipfi.seq < min(isage.seq, ipdp.seq)
    assert (ipfi.signal, isage.signal, ipdp.signal) == ("increment", "increment", "value")


def test_a_method_may_have_another_detector() -> None:
    found = of_methods({"isage": {"detector": "page_hinkley", "params": {"threshold": 5.0}}})
    [isage] = [c for c in found if c.method == "isage"]
    assert JUMP < isage.seq < JUMP + 10
    assert isage.after_seq == pytest.approx(JUMP, abs=16)
    assert "risen" in isage.detail


def test_a_method_that_is_not_watched_has_no_changes_and_the_others_do() -> None:
    everything = of_methods({})
    without = of_methods({"isage": {"enabled": False}})
    assert without == [change for change in everything if change.method != "isage"]
    assert len(without) < len(everything)


@kit.SLOW_PROPERTY
@given(st.integers(0, 600), st.integers(0, 600), st.sampled_from([1, 7]))
def test_repeats_after_a_crash_are_dropped(crash: int, back_to: int, every: int) -> None:
    records = explanations(increments(), every)
    crash = min(crash, len(records))
    replayed = [*records[:crash], *records[min(back_to, crash) :]]
    assert kit.encoded(changes(replayed)) == kit.encoded(changes(records))


def test_what_was_seen_counts_once_even_in_an_explanation_that_brings_more() -> None:
    """An explainer that started cold may group the increments otherwise."""
    values = increments()
    records = explanations(values, 10)
    # up to seq 289; then from 285 on in new groups, the first without a predecessor
    regrouped = [explanation([*range(285, 300)], values[285:300], None), *records[30:]]
    assert kit.encoded(changes([*records[:29], *regrouped])) == kit.encoded(changes(records))


def test_a_gap_is_published_and_detection_continues() -> None:
    records = explanations(increments())
    gap, drift = changes([*records[:100], *records[120:]])
    assert (gap.kind, gap.seq, gap.feature, gap.method) == ("gap", 120, "a", "ipfi")
    assert "seq 99" in gap.detail
    assert (gap.signal, gap.before, gap.after, gap.window) == (None, None, None, None)
    assert drift.kind == "drift"


def test_a_missing_beginning_is_a_gap() -> None:
    gap, *_ = changes(explanations(increments())[50:])
    assert (gap.kind, gap.seq) == ("gap", 50)
    assert "its beginning" in gap.detail


def test_an_explanation_without_a_predecessor_restarts_detection() -> None:
    """What was before a cold start is not compared with what comes after it."""
    values = increments()
    first, second = explanations(values)[:JUMP], explanations(values)[JUMP:]
    begins = [replace(second[0], previous_seq=None), *second[1:]]
    assert changes([*first, *begins]) == changes(first) + changes(begins)
    assert changes([*first, *second]) != []


@pytest.mark.parametrize("signal", ["increment", "value"])
def test_of_several_smoothing_rates_the_first_is_watched(signal: str) -> None:
    slow = explanations(increments())
    fast = [replace(each, alpha=0.5, value=-each.value) for each in slow]
    config = config_of(explain={"alpha": [0.05, 0.5]}, drift={"signal": signal})
    both = [record for pair in zip(slow, fast, strict=True) for record in pair]
    assert kit.run(DriftStage(config), kit.passed_on(both)) == changes(slow, signal=signal) != []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seqs": []}, "seqs"),
        ({"seqs": [11], "increments": [1.0]}, "seqs"),
        ({"loss": 1e200}, "loss"),
        ({"increments": [1.0, 2.0]}, "increments"),
        ({"method": "shap"}, "method"),
        ({"value": None}, "value"),
        ({"alpha": 0.5}, "alpha 0.5 is not configured"),
    ],
)
def test_a_bad_explanation_is_a_dead_letter_and_changes_nothing(
    fields: dict[str, Any], reason: str
) -> None:
    records = explanations(increments())
    bad = replace(records[10], **fields)
    stage = DriftStage(config_of())
    before: list[Record] = kit.run(stage, kit.passed_on(records[:10]))
    letter = only_letter(kit.run(stage, kit.passed_on([bad])))
    assert reason in letter.reason
    after = kit.run(stage, kit.passed_on(records[10:]))
    assert kit.encoded([*before, *after]) == kit.encoded(changes(records))


def of_features(a: list[Explanation], b: str, number: int) -> list[Explanation]:
    """Return the explanations of a, each with one of b after it, of an explainer of its own."""
    others = [replace(e, feature="b", incarnation=b) for e in a]
    own = [replace(e, incarnation=str(number)) for e in a]
    return [each for pair in zip(own, others, strict=True) for each in pair]


def two_features(records: list[Explanation]) -> list[Change]:
    """Return the changes of a stage for two features."""
    return kit.of_kind(kit.run(DriftStage(config_of("a", "b")), kit.passed_on(records)), Change)


def test_explainers_that_start_cold_on_their_own_keep_no_feature_from_being_watched() -> None:
    values = increments()
    together = two_features(of_features(explanations(values), "1", 1))
    apart = two_features(of_features(explanations(values), "1/60", 1))
    assert [(c.feature, c.seq) for c in apart] == [(c.feature, c.seq) for c in together]
    assert {c.feature: c.incarnation for c in apart} == {"a": "1", "b": "1/60"}


def test_a_feature_whose_explainer_starts_cold_restarts_and_the_others_continue() -> None:
    before = of_features(explanations(increments()[:100]), "1", 1)
    later = [e for e in explanations(increments()) if e.seq >= 100]
    first = replace(later[0], previous_seq=None)
    after = of_features(later, "1/70", 1)
    after[1] = replace(first, feature="b", incarnation="1/70")
    changes = two_features([*before, *after, *before[-4:]])
    assert {c.feature for c in changes if c.kind == "drift"} == {"a", "b"}
    assert not [c for c in changes if c.kind == "gap"]


def test_explanations_of_the_models_state_before_may_come_between_those_of_the_new_one() -> None:
    values = increments()
    old = of_features(explanations(values), "1", 1)
    new = of_features(explanations(values), "9", 9)
    apart = [*two_features(old), *two_features(new)]
    mixed = two_features([each for pair in zip(new, old, strict=True) for each in pair])
    assert sorted(c.id for c in mixed) == sorted(c.id for c in apart)


def registered(cold_starts: Mapping[int, str] | None = None) -> Registered:
    """Return a register in which number 9 is that of other versions."""
    lives = {1, 9, 10, *(cold_starts or {})}
    return Registered(number=1, lives=lives, places={**(cold_starts or {})}, adopted={9: {}})


def across_versions(
    before: str, after: str, cold_starts: Mapping[int, str] | None = None
) -> tuple[list[Change], list[Record]]:
    """Return the changes, and all records, if explanations get another incarnation at 150."""
    records = [
        replace(e, incarnation=before if e.seq < 150 else after) for e in explanations(increments())
    ]
    stage = DriftStage(config_of())
    stage.lives = registered(cold_starts)
    published = kit.run(stage, kit.passed_on(records))
    return kit.of_kind(published, Change), published


MODEL, EXPLAINER = f"model {kit.STREAM}", "explainer fluxplain.evaluations-0"


@pytest.mark.parametrize(
    ("before", "after", "cold_starts"),
    [
        ("1", "9", {}),
        ("1", "1/9", {}),
        ("1/9", "9", {}),
        ("1/7", "1/9", {7: EXPLAINER}),
        ("1/7", "9", {7: EXPLAINER}),
        ("4", "9", {4: MODEL}),
        ("1", "9", {4: f"{MODEL}0", 5: "join fluxplain.labels-0"}),
    ],
)
def test_other_versions_of_the_same_state_keep_the_detectors(
    before: str, after: str, cold_starts: Mapping[int, str]
) -> None:
    whole = changes(explanations(increments()))
    found, _ = across_versions(before, after, cold_starts)
    assert [(c.kind, c.seq, c.status) for c in found] == [(c.kind, c.seq, c.status) for c in whole]
    assert {c.incarnation for c in found} == {after}


@pytest.mark.parametrize(
    ("before", "after", "cold_starts"),
    [
        ("1", "9", {7: MODEL}),
        ("1/9", "9", {7: MODEL}),
        ("1", "9", {7: EXPLAINER}),
        ("1", "1/9", {7: EXPLAINER}),
    ],
)
def test_other_versions_of_a_state_that_started_cold_since_keep_none(
    before: str, after: str, cold_starts: Mapping[int, str]
) -> None:
    found, _ = across_versions(before, after, cold_starts)
    assert found[0].kind == "gap"


@pytest.mark.parametrize("after", ["10", "1/10", "9/10"])
def test_a_cold_start_after_other_versions_keeps_none(after: str) -> None:
    found, _ = across_versions("1", after)
    assert found[0].kind == "gap", "the detectors began again without what came before"


def test_late_explanations_of_former_versions_are_ignored() -> None:
    records = explanations(increments()[:200])
    mixed = [
        *records[:100],
        *(replace(e, incarnation="9") for e in records[100:150]),
        *records[100:150],
        *(replace(e, incarnation="9") for e in records[150:]),
    ]
    stage = DriftStage(config_of())
    stage.lives = registered()
    assert not kit.run(stage, kit.passed_on(mixed))
