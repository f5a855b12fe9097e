"""The table of drifts: its alarms are the pipeline's, and its report counts right."""

from typing import Any

import numpy as np

from fluxplain.schemas import Change, Explanation
from fluxplain.stages import DriftStage
from tests.kit import support as kit
from tests.measure.experiments import drift
from tests.measure.experiments.drift_runs import DRIFTS, WARM_UP, variants


def test_alarms_are_those_of_the_pipeline() -> None:
    config = kit.make_config(
        features=dict.fromkeys("abc", "numeric"),
        explain={"methods": ["ipfi"]},
        drift={"detector": "glr", "delta": None, "params": {}, "min_effect": 0.05},
    )
    rng = np.random.default_rng(1)
    numbers = {name: mean + rng.normal(size=1_500) for name, mean in {"a": 3.0, "b": 20.0}.items()}
    numbers["c"] = 1.0 + rng.normal(size=1_500)
    numbers["a"][700:] += 2.0
    numbers["c"][900:] += 1.0  # too small to matter beside b
    records = [
        Explanation(
            stream=kit.STREAM,
            feature=name,
            method="ipfi",
            seq=t,
            previous_seq=t - 1 if t else None,
            ts=t,
            alpha=0.01,
            updates=t + 1,
            value=float(each[t]),
            std_error=0.1,
            seqs=[t],
            increments=[float(each[t])],
        )
        for t in range(1_500)
        for name, each in numbers.items()
    ]
    published = kit.of_kind(kit.run(DriftStage(config), kit.passed_on(records)), Change)
    # three features and the loss
    found = variants("ipfi", 4)["default"].alarms(numbers)
    assert [(c.feature, c.seq) for c in published] == [("a", t) for t in found["a"]]
    assert 700 <= found["a"][0] < 750
    assert not found["b"]
    assert not found["c"]


def results(
    *, first: int | None = None, without: int | None = None, false_alarms: int = 0
) -> dict[str, Any]:
    """Return what two runs would give if all settings, streams and methods found the same.

    With a frozen model only salary has false alarms.
    """
    features = {feature for scenario in DRIFTS.values() for feature in scenario.changing}
    cells: dict[str, list[int | None]] = {
        "drifting": [0, 1, first],
        "learning": [0, 1, without],
        "frozen": [0, 0, None],
    }
    found: dict[str, Any] = {}
    for task in drift.tasks(2):
        kind = task.arguments["kind"]
        each = dict.fromkeys(features, cells[kind])
        if kind == "frozen":
            each["salary"] = [false_alarms, 0, None]
        methods: dict[str, Any] = dict.fromkeys(("ipfi", "isage", "ipdp"), each)
        loss = {"loss": {"": cells[kind]}}
        found[task.key] = {
            key: methods | (loss if variant.signal == "increment" else {})
            for key, variant in variants("loss", 1).items()
        }
    return found


def test_the_report_counts_delays_and_false_alarms() -> None:
    report = drift.report(results(first=120, false_alarms=1))
    rate = 3 * 1e5 / (drift.FROZEN - WARM_UP)  # of three methods
    assert f"has {rate:.2f} false alarms in 100,000 records" in report.sentence
    assert "in at least one of 2 runs: none" in report.sentence
    assert f"| {DRIFTS['sudden'].title} | default | 120 (2 of 2) |" in report.table


def test_an_alarm_that_comes_without_the_drift_too_finds_none() -> None:
    every = "; ".join(scenario.title for scenario in DRIFTS.values())
    for without, missed in ((121, "none"), (120, every)):
        report = drift.report(results(first=120, without=without))
        assert f"finds in at least one of 2 runs: {missed}." in report.sentence


def test_the_report_says_what_was_missed() -> None:
    report = drift.report(results())
    for scenario in DRIFTS.values():
        assert scenario.title in report.sentence
        assert scenario.title in report.table
