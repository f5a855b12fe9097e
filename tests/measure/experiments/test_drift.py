"""The table of drifts: its alarms are the pipeline's, and its report counts right."""

from typing import Any

from fluxplain.config import DriftSettings
from fluxplain.drift.signal_watch import SignalWatch
from tests.measure.experiments import drift
from tests.measure.experiments.drift_runs import DRIFTS, VARIANTS, WARM_UP, Variant


def test_alarms_are_those_of_the_pipeline() -> None:
    settings = DriftSettings(delta=0.002, grace_period=10).of("ipfi")
    assert settings is not None
    watch = SignalWatch(settings, "")
    numbers = [float(t // 300 % 2) for t in range(1_500)]
    expected = [t for t, number in enumerate(numbers) if watch.update(t, number, None)]
    assert Variant("increment", 0.002, 10, 50).alarms(numbers) == expected
    assert expected


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
            variant.key: methods | (loss if variant.signal == "increment" else {})
            for variant in VARIANTS
        }
    return found


def test_the_defaults_are_among_the_settings_compared() -> None:
    assert set(drift._defaults().values()) <= set(VARIANTS)


def test_the_report_counts_delays_and_the_worst_feature() -> None:
    report = drift.report(results(first=120, false_alarms=1))
    rate = 1e5 / (drift.FROZEN - WARM_UP)
    assert f"have {rate:.2f} false alarms in 100,000 records" in report.sentence
    assert "in at least one of 2 runs: none" in report.sentence
    assert f"| {DRIFTS['sudden'].title} | 120 (2 of 2) |" in report.table


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
