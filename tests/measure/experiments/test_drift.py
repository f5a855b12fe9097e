"""The table of drifts: its alarms are the pipeline's, and its report counts right."""

import random
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate import evaluator_for
from fluxplain.schemas import Change, Explanation
from fluxplain.stages import DriftStage
from tests.kit import support as kit
from tests.measure.experiments import drift
from tests.measure.experiments.drift_runs import DRIFTS, STATIONARY, WARM_UP, default, run
from tests.measure.experiments.drift_streams import Reversing
from tests.measure.experiments.drift_windows import BLOCK, REFERENCE, alarms, ks, mean, psi, shapley


def test_alarms_are_those_of_the_pipeline() -> None:
    config = kit.make_config(
        features=dict.fromkeys("abc", "numeric"),
        explain={"methods": ["ipdp"]},
        drift={"detector": "glr", "delta": None, "params": {}, "min_effect": 0.05},
    )
    rng = np.random.default_rng(1)
    numbers = {name: mean + rng.normal(size=1_500) for name, mean in {"a": 3.0, "b": 20.0}.items()}
    numbers["c"] = 1.0 + rng.normal(size=1_500)
    numbers["a"][700:] += 2.0
    numbers["c"][900:] += 1.0  # too small to matter beside b
    trends = {name: 1.0 + 0.5 * rng.normal(size=1_500) for name in numbers}
    trends["b"][1_100:] -= 2.0  # its effect reverses
    trends["c"][1_100:] += 2.0
    records = [
        Explanation(
            stream=kit.STREAM,
            feature=name,
            method="ipdp",
            seq=t,
            previous_seq=t - 1 if t else None,
            ts=t,
            alpha=0.01,
            updates=t + 1,
            value=float(each[t]),
            std_error=0.1,
            seqs=[t],
            increments=[float(each[t])],
            trends=[float(trends[name][t])],
        )
        for t in range(1_500)
        for name, each in numbers.items()
    ]
    published = kit.of_kind(kit.run(DriftStage(config), kit.passed_on(records)), Change)
    noticed = [(c.feature, c.seq) for c in published if c.status == "noticed"]
    # the increments and trends of three features, and the loss
    found = default("ipdp", 7).alarms(numbers, trends)
    assert noticed == [(f, t) for f in "ab" for t in found[f]]
    assert 700 <= found["a"][0] < 750
    assert 1_100 <= found["b"][0] < 1_150
    assert not found["c"]


@pytest.mark.parametrize("differs", [ks, psi, mean])
def test_windows_find_a_shift_and_begin_again_there(differs: Any) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=12 * BLOCK)
    assert alarms(differs, {"a": numbers}) == {"a": []}
    numbers[REFERENCE + BLOCK :] += 2.0
    assert alarms(differs, {"a": numbers}) == {"a": [REFERENCE + 2 * BLOCK - 1]}


@pytest.mark.parametrize("differs", [ks, psi])
def test_windows_of_equal_numbers_do_not_differ(differs: Any) -> None:
    assert alarms(differs, {"a": np.ones(12 * BLOCK)}) == {"a": []}


def test_shapley_values_add_up_between_two_records() -> None:
    model = Reversing(1, at=10)
    x, other = {"x1": 1.0, "x2": 0.0}, {"x1": 1.0, "x2": 3.0}
    output, sizes = shapley(evaluator_for(model), x, other, random.Random(1))
    p, q = model.predict_proba_one(x), model.predict_proba_one(other)
    assert output == pytest.approx(p)
    assert sizes == pytest.approx({"x1": 0.0, "x2": abs(q[1] - p[1])})


def test_a_reversed_effect_is_found_by_trends_only() -> None:
    found = run("drifting", "reversing", pretraining=10, before=1_000, records=1_500, seed=1)
    after = {
        (detector, method, feature): first
        for detector, methods in found.items()
        for method, features in methods.items()
        for feature, (_, _, first) in features.items()
        if first is not None
    }
    assert after.keys() - {("values", "ipdp", "x1")} == {("default", "ipdp", "x1")}
    assert after["default", "ipdp", "x1"] < 100


def results(
    *,
    first: int | None = None,
    without: int | None = None,
    false_alarms: int = 0,
    ks_first: int | None = None,
) -> dict[str, Any]:
    """Return what two runs would give if all detectors, streams and methods found the same.

    With a frozen model only the first feature has false alarms of the default's methods.
    """
    cells: dict[str, list[int | None]] = {
        "drifting": [0, 1, first],
        "learning": [0, 1, without],
        "frozen": [0, 0, None],
    }
    features = [*dict.fromkeys(f for each in DRIFTS.values() for f in each.changing), "other"]
    found: dict[str, Any] = {}
    for task in drift.tasks(2):
        kind = task.arguments["kind"]
        each = dict.fromkeys(features, cells[kind])
        loss = {"loss": {"": cells[kind]}}
        false = {features[0]: [false_alarms, 0, None]} if kind == "frozen" else {}
        methods: dict[str, Any] = dict.fromkeys(("ipfi", "isage", "ipdp"), each)
        inputs = dict.fromkeys(features, [0, 1, ks_first] if kind == "drifting" else [0, 0, None])
        found[task.key] = {
            "default": dict.fromkeys(methods, each | false) | loss,
            "adwin": loss,
            "values": methods,
            "psi": {"inputs": each},
            "ks": {"inputs": inputs},
            "shap": {"shap": each},
        }
    return found


def titles(*, without: str) -> list[str]:
    return [each.title for name, each in DRIFTS.items() if name != without]


def test_the_report_counts_delays_and_false_alarms() -> None:
    report = drift.report(results(first=120, ks_first=120, false_alarms=1))
    records = 2 * (drift.FROZEN - WARM_UP)
    count = 2 * 3  # runs and methods
    rate = f"{count * 1e5 / records:.1f}"
    assert f"Most are with {STATIONARY['agrawal'].title}: {rate} (≤ " in report.sentence
    assert "shorter median delay for none. The default misses, in runs of 2: none." in (
        report.sentence
    )
    assert "a feature first that changes, for none" in report.sentence
    assert f"| {DRIFTS['sudden'].title} | 120 (120–120); 2 of 2; " in report.table
    assert "silence is right, the default alarms at it in 2 of 2 runs, KS in 2" in report.sentence


def test_no_false_alarm_in_100_000_records_bounds_the_rate_by_3() -> None:
    assert drift._rate(0, 100_000) == "0.0 (≤ 3.0)"


def test_an_alarm_that_comes_without_the_drift_too_finds_none() -> None:
    for without, missed in ((121, False), (120, True)):
        report = drift.report(results(first=120, without=without))
        for title in titles(without=drift.UNRELATED):
            assert (f"{title} (2)" in report.sentence) == missed


def test_the_report_says_where_another_detector_is_faster() -> None:
    report = drift.report(results(first=120, ks_first=60))
    for title in titles(without=drift.UNRELATED):
        assert f"{title} (KS, inputs: 60 against 120)" in report.sentence


def test_the_report_says_what_was_missed() -> None:
    report = drift.report(results())
    for title in titles(without=drift.UNRELATED):
        assert f"{title} (2)" in report.sentence
        assert title in report.table
