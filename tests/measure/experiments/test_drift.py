"""The table of drifts: its streams change where they say, and its report counts right."""

import json
from itertools import islice
from typing import Any

import pytest
from matplotlib.figure import Figure

from fluxplain.config import DriftSettings
from fluxplain.drift.signal_watch import SignalWatch
from tests.kit.support import AgrawalRule
from tests.measure.experiments import drift, drift_streams
from tests.measure.experiments.drift import DRIFTS, EXPERIMENT, alarms, variant_key, variants
from tests.measure.experiments.drift_signals import WARM_UP


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
    watch = SignalWatch(settings, "")
    numbers = [float(t // 300 % 2) for t in range(1_500)]
    expected = [t for t, number in enumerate(numbers) if watch.update(t, number, None)]
    assert alarms(numbers, 0.002, 10, 50) == expected
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
    for task in EXPERIMENT.tasks(2):
        kind = task.arguments["kind"]
        each = dict.fromkeys(features, cells[kind])
        if kind == "frozen":
            each["salary"] = [false_alarms, 0, None]
        methods: dict[str, Any] = dict.fromkeys(("ipfi", "isage", "ipdp"), each)
        loss = {"loss": {"": cells[kind]}}
        found[task.key] = {
            variant_key(*variant): methods | (loss if variant[0] == "increment" else {})
            for variant in variants()
        }
    return found


def figures(**found: Any) -> dict[str, str]:
    """Return the report's figures by name."""
    return {line.name: line.ours for line in EXPERIMENT.report(results(**found)).lines}


def test_the_defaults_are_among_the_settings_compared() -> None:
    compared = {variant_key(*variant) for variant in variants()}
    assert set(drift._defaults().values()) <= compared


def test_the_report_counts_delays_and_the_worst_feature() -> None:
    found = figures(first=120, false_alarms=1)
    rate = 1e5 / (drift.FROZEN - WARM_UP)
    assert found["false alarms of a feature in 100,000 records"] == f"{rate:.2f}"
    assert found["kinds of drift missed in any run"] == "0"
    assert found["sudden function drift, median delay"].startswith("120 (2 of 2)")


def test_an_alarm_that_comes_without_the_drift_too_finds_none() -> None:
    assert figures(first=120, without=121)["kinds of drift missed in any run"] == "0"
    assert figures(first=120, without=120)["kinds of drift missed in any run"] == "7"


def test_the_report_says_what_was_missed() -> None:
    report = EXPERIMENT.report(results())
    assert all(scenario.title in report.sentence for scenario in DRIFTS.values())


def test_a_virtual_drift_widens_the_range() -> None:
    records = [x["salary"] for x, _ in islice(drift_streams.widened(1, at=500), 1_500)]
    assert max(records[:500]) <= 150_000 < max(records[500:]) <= 200_010


@pytest.mark.parametrize("name", ["agrawal", "rotating"])
def test_a_stream_without_its_drift_has_the_same_records_until_then(name: str) -> None:
    [drifting] = [s for key, s in DRIFTS.items() if key in ("sudden", name) and s.control == name]
    still = [*islice(drift.STILL[name].stream(1, 400), 400)]
    with_drift = [*islice(drifting.stream(1, 200), 400)]
    assert still[:200] == with_drift[:200]
    assert still != with_drift


@pytest.mark.usefixtures("elec2_is_there")
def test_a_small_run_is_reported() -> None:
    sizes = {"pretraining": 20, "before": 110, "records": 130}
    tasks = EXPERIMENT.tasks(1)
    found = {task.key: task.function(**task.arguments | sizes) for task in tasks}
    report = EXPERIMENT.report(json.loads(json.dumps(found)))
    assert all(scenario.title in report.table for scenario in DRIFTS.values())
    assert report.draw is not None
    report.draw(Figure())
