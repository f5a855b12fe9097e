"""The table of drifts: its streams change where they say, and its report counts right."""

from itertools import islice
from typing import Any

import pytest

from pipeline.config import DriftSettings
from pipeline.detectors import ADWINParameters
from pipeline.stages.watch import Watch
from tests.experiments import drift, drift_streams
from tests.experiments.drift import DRIFTS, EXPERIMENT, STATIONARY, alarms, variant_key, variants
from tests.experiments.drift_signals import WARM_UP
from tests.support import AgrawalRule


def share_by_the_rule(stream: drift_streams.Stream, n: int) -> float:
    """Return how many labels are those of agrawal concept 1."""
    rule = AgrawalRule()
    return sum(rule.predict_one(x) == y for x, y in islice(stream, n)) / n


def test_a_function_drift_begins_where_it_says() -> None:
    stream = drift_streams.sudden(1, at=500)
    assert share_by_the_rule(stream, 500) == 1.0
    assert share_by_the_rule(stream, 500) < 0.8
    stream = drift_streams.gradual(1, at=1_000, within=500)
    assert share_by_the_rule(stream, 1_000) > 0.98
    within, after = share_by_the_rule(stream, 500), share_by_the_rule(stream, 500)
    assert 0.98 > within > after


@pytest.mark.parametrize("stream", [drift_streams.exchanged, drift_streams.rich])
def test_a_feature_drift_begins_where_it_says(stream: Any) -> None:
    records = [x for x, _ in islice(stream(1, at=500), 1_000)]
    before, after = records[:500], records[500:]
    assert sum(x["salary"] for x in after) > 1.2 * sum(x["salary"] for x in before)


def test_a_virtual_drift_keeps_the_rule() -> None:
    assert share_by_the_rule(drift_streams.rich(1, at=300), 900) == 1.0


def test_the_rotating_hyperplane_turns_from_one_feature_to_the_other() -> None:
    records = [*islice(drift_streams.rotating(1, at=1_000, within=1_000), 3_000)]
    for feature, part in (("x1", records[:1_000]), ("x2", records[2_000:])):
        assert sum((x[feature] >= 0.0) == y for x, y in part) > 800


def test_alarms_are_those_of_the_pipeline() -> None:
    settings = DriftSettings(delta=0.002, grace_period=10).of("ipfi")
    assert settings is not None
    watch = Watch(settings, "")
    numbers = [float(t // 300 % 2) for t in range(1_500)]
    expected = [t for t, number in enumerate(numbers) if watch.update(number)]
    assert alarms(numbers, 0.002, 10, 50) == expected
    assert expected


def results(*, first: int | None, false_alarms: int) -> dict[str, Any]:
    """Return what two runs would give if all settings and methods found the same."""
    found: dict[str, Any] = {}
    for task in EXPERIMENT.tasks(2):
        kind, name = task.arguments["kind"], task.arguments["name"]
        scenario = DRIFTS[name] if kind == "drifting" else STATIONARY[name]
        features = scenario.changing or ("a", "b")
        cell = [0, 1, first] if kind == "drifting" else [false_alarms, 0, None]
        methods: dict[str, Any] = dict.fromkeys(
            ("ipfi", "isage", "ipdp"), dict.fromkeys(features, cell)
        )
        found[task.key] = {
            variant_key(*variant): methods
            | ({"loss": {"": cell}} if variant[0] == "increment" else {})
            for variant in variants()
        }
    return found


def test_the_default_is_one_of_the_settings_compared() -> None:
    default = DriftSettings()
    adwin = (default.delta, default.grace_period, ADWINParameters().min_window_length)
    assert (default.signal, *adwin) in [*variants()]


def test_the_report_counts_alarms_and_delays() -> None:
    report = EXPERIMENT.report(results(first=120, false_alarms=1))
    figures = {line.name: line.ours for line in report.lines}
    rate = 1e5 / (drift.FROZEN - WARM_UP)
    assert figures["false alarms of a feature in 100,000 records"] == f"{rate:.2f}"
    assert figures["kinds of drift missed in any run"] == "0"
    assert figures["sudden function drift, median delay"] == "120 (2 of 2)"


def test_the_report_says_what_was_missed() -> None:
    report = EXPERIMENT.report(results(first=None, false_alarms=0))
    assert {line.name: line.ours for line in report.lines}[
        "kinds of drift missed in any run"
    ] == "7"
    assert all(scenario.title in report.sentence for scenario in DRIFTS.values())
