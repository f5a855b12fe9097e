"""The iPDP experiments, small."""

import json
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.measure.experiments import ipdp_agrawal, ipdp_batch, ipdp_elec2, ipdp_hyperplane
from tests.measure.experiments.experiment import Experiment, Report

SMALL: list[tuple[Experiment, dict[str, Any]]] = [
    (ipdp_agrawal.EXPERIMENT, {"length": 150, "batch": 20, "every": 50}),
    (ipdp_batch.EXPERIMENT, {"layers": [3], "records": 300, "explained": 120}),
    (ipdp_elec2.EXPERIMENT, {"records": 300, "shown": [150, 300], "every": 50}),
    (
        ipdp_hyperplane.EXPERIMENT,
        {"drift": 300, "records": 600, "window": 100, "every": 50},
    ),
]


def reported(experiment: Experiment, results: dict[str, Any]) -> Report:
    """Return the report after a turn through JSON, drawn."""
    report = experiment.report(json.loads(json.dumps(results)))
    assert report.draw is not None
    report.draw(Figure())
    return report


@pytest.mark.usefixtures("elec2_is_there")
@pytest.mark.parametrize(
    ("experiment", "sizes"), SMALL, ids=lambda each: getattr(each, "name", "small")
)
def test_a_small_run_is_reported(experiment: Experiment, sizes: dict[str, Any]) -> None:
    tasks = experiment.tasks(2)
    assert all(sizes.keys() < task.arguments.keys() for task in tasks)
    results = {task.key: task.function(**task.arguments | sizes) for task in tasks}
    report = reported(experiment, results)
    assert report.lines
    assert report.sentence.split()[0] in ("Equal,", "Equal:", "Worse,", "Worse:")


def changes(*found: list[int]) -> Report:
    """Return what is reported of runs with these changes."""
    curve = {"150": [[0.0, 1.0], [0.4, 0.6]]}
    runs = {
        f"run {i}": {"changes": each, "curves": curve, "course": [0.1, 0.2], "every": 100}
        for i, each in enumerate(found, 1)
    }
    return reported(ipdp_elec2.EXPERIMENT, runs)


def test_changes_are_compared_with_chance() -> None:
    report = changes([22_293, 35_893, 43_957], [22_193, 35_793, 43_857])
    assert report.sentence.startswith("Equal")
    assert "nearer than by chance" in report.sentence
    assert report.lines[1].ours.startswith("50 records")


def test_a_change_before_the_feature_varies_is_worse() -> None:
    report = changes([17_424, 17_425])
    assert report.sentence.startswith("Worse: 1 changes")
    assert "no nearer than by chance" in changes([17_425]).sentence


def test_the_farthest_curve_of_any_run_counts() -> None:
    def run(distance: float) -> dict[str, Any]:
        curve = {"grid": [0.0, 1.0], "ipdp": [distance, 1.0 + distance], "batch": [0.0, 1.0]}
        curves = {ipdp_batch.SHOWN: curve}
        return {"r2": 0.9, "curves": {"0.01": curves, "0.001": curves}}

    report = reported(ipdp_batch.EXPERIMENT, {"run 1": run(0.0), "run 2": run(0.06)})
    assert report.lines[0].ours == "1 of 2, the farthest 6.0%"
    assert report.sentence.startswith("Worse")
    assert "0.0600" in report.sentence
