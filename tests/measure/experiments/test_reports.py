"""Each experiment, small, and what its report says."""

import json
import pickle
import random
import re
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate import Encoding
from fluxplain.explain.storage import GeometricReservoir
from tests.measure.experiments import (
    ipdp_batch,
    ipdp_elec2,
    isage_elec2,
    isage_imputers,
    isage_sensors,
    isage_table_2,
)
from tests.measure.experiments.__main__ import EXPERIMENTS
from tests.measure.experiments.beside_ixai import mean_age
from tests.measure.experiments.drawn_reports import reported
from tests.measure.experiments.errors import error
from tests.measure.experiments.experiment import Experiment, Report
from tests.measure.experiments.results import fingerprint
from tests.measure.experiments.streams import VICPRICE_VARIES

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}

SMALL: dict[str, tuple[int, dict[str, Any], str]] = {
    "ipfi-table-1": (
        1,
        {"n": 100, "permutations": 2, "reservoir_size": 20, "realizations": 2},
        "Worse: above the printed median|Equal or better: ",
    ),
    "isage-table-2": (
        1,
        {"length": 150, "windows": [20, 40, 60, 100], "training": 300, "truth_records": 200},
        r"(Better( in some cells)?|Worse) with m = 1",
    ),
    "isage-imputers": (
        1,
        {"trees": 1, "length": 250, "true_records": 100},
        "interventional iSAGE (reaches|misses)",
    ),
    "isage-sensors": (
        1,
        {"hours": 710, "begins": [200, 205], "lasts": 100},
        r"(Equal|Worse): \d of 2 faulty sensors",
    ),
    "ipdp-agrawal": (2, {"length": 150, "batch": 20, "every": 50}, "(Equal|Worse), by limits"),
    "ipdp-batch": (
        2,
        {"layers": [3], "records": 300, "explained": 120},
        "(Equal|Worse): with the paper's α",
    ),
    "ipdp-elec2": (
        2,
        {"records": 300, "shown": [150, 300], "every": 50},
        r"(Equal|Worse): \d+ changes",
    ),
    "ipdp-hyperplane": (
        2,
        {"drift": 300, "records": 600, "window": 100, "every": 50},
        r"(Equal|Worse): \d+ of 8 curves",
    ),
    "drift": (1, {"pretraining": 20, "before": 110, "records": 130}, "With frozen models"),
}
"""Runs, sizes, and how the sentence begins."""


@pytest.mark.usefixtures("data_is_there")
@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_is_reported(name: str) -> None:
    runs, sizes, sentence = SMALL[name]
    tasks = BY_NAME[name].tasks(runs)
    assert all(any(size in task.arguments for task in tasks) for size in sizes)
    results = {}
    for task in tasks:
        small = {size: value for size, value in sizes.items() if size in task.arguments}
        results[task.key] = task.function(**task.arguments | small)
    report = reported(BY_NAME[name], results)
    assert re.match(sentence, report.sentence)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_tasks(experiment: Experiment) -> None:
    one, two = experiment.tasks(1), experiment.tasks(2)
    keys = [task.key for task in two]
    assert len(set(keys)) == len(keys) > len(one)
    assert {task.key for task in one} < set(keys)
    for task in two:
        assert pickle.loads(pickle.dumps(task)) == task
        assert json.loads(json.dumps(task.arguments)) == task.arguments


def test_each_has_a_name_and_a_fingerprint_of_its_own() -> None:
    assert len(BY_NAME) == len(EXPERIMENTS)
    assert len({fingerprint(experiment) for experiment in EXPERIMENTS}) == len(EXPERIMENTS)


def changes(*found: list[int]) -> Report:
    curve = {"150": [[0.0, 1.0], [0.4, 0.6]]}
    runs = {
        f"run {i}": {"changes": each, "curves": curve, "course": [0.1, 0.2], "every": 100}
        for i, each in enumerate(found, 1)
    }
    return reported(ipdp_elec2, runs)


def test_changes_are_compared_with_chance() -> None:
    report = changes([22_293, 35_893, 43_957], [22_193, 35_793, 43_857])
    assert report.sentence.startswith("Equal")
    assert "nearer than by chance" in report.sentence
    assert "on average 50 records from the nearest" in report.sentence


def test_a_change_before_the_feature_varies_is_worse() -> None:
    report = changes([17_424, 17_425])
    assert report.sentence.startswith("Worse: 1 changes")
    assert "no nearer than by chance" in changes([17_425]).sentence


def network(r2: float, distance: float, *, weighted: float = 0.0) -> dict[str, Any]:
    """Return a run in which iPDP is off the batch PDP, and off that with its own weights."""
    curve = {"grid": [0.0, 1.0], "ipdp": [distance, 1.0 + distance], "batch": [0.0, 1.0]}
    curve["weighted"] = [distance - weighted, 1.0 + distance - weighted]
    curves = {ipdp_batch.SHOWN: curve}
    return {"r2": r2, "curves": {"0.01": curves, "0.001": curves}}


def test_the_farthest_curve_of_any_run_counts() -> None:
    report = reported(ipdp_batch, {"run 1": network(0.9, 0.0), "run 2": network(0.9, 0.06)})
    assert report.sentence.startswith("Worse: with the paper's α, 1 of 2 curves")
    assert "(3.0%; 0.0%; 0.0%)" in report.table
    assert "2 of 2 are within it after each curve's mean is subtracted" in report.sentence
    assert "0.0600" in report.sentence


def test_a_network_that_learned_nothing_is_left_out_and_named() -> None:
    runs = {"run 1": network(0.9, 0.0, weighted=0.1), "run 2": network(-0.01, 9.0)}
    report = reported(ipdp_batch, runs)
    assert report.sentence.startswith("Equal: with the paper's α, 1 of 1 curves")
    assert "0 of 1 if the batch PDP has iPDP's weights" in report.sentence
    assert "Left out is run 2" in report.sentence
    assert "| run 2 | -0.010 | left out |" in report.table


def test_table_2_counts_cells() -> None:
    ours = {
        method: [value / 2 for value, _ in isage_table_2.PAPER["MSE", "iSAGE", "low"]]
        for method in (
            *(f"iSAGE, m = {m}" for m in isage_table_2.SAMPLES),
            *(f"sliding window, m = {m}" for m in isage_table_2.WINDOW_SAMPLES),
        )
    }
    floor = {f"m = {m}": [1.0] for m in isage_table_2.SAMPLES}
    errors = {"MSE": ours, "MAE": ours}
    result = dict.fromkeys(isage_table_2.SWITCHES, errors) | {"floor": {"MSE": floor, "MAE": floor}}
    report = reported(isage_table_2, {"run 0": result})
    cells = r"at or below the printed one in (\d+) of 12 cells(?: and below [^;]* SAGE's in (\d+))?"
    assert re.findall(cells, report.sentence) == [("12", "0"), ("12", ""), ("12", "0")]
    assert "12 of the 12 printed errors are smaller" in report.sentence


@pytest.mark.parametrize(("interventional", "says"), [(9.0, "reaches"), (5.0, "misses")])
def test_the_sentence_on_imputers_is_computed(interventional: float, says: str) -> None:
    names = isage_imputers.run(seed=1, trees=1, length=120, true_records=50)
    result = dict.fromkeys(names, (0.02, 0.01)) | {
        f"interventional iSAGE, m = {isage_imputers.DEFAULT}": (interventional, 1.0)
    }
    sentence = reported(isage_imputers, {"run 0": result}).sentence
    assert sentence.startswith(f"interventional iSAGE {says} the target of > 5")
    assert "observational iSAGE reaches the target of ≤ 2" in sentence


@pytest.mark.usefixtures("data_is_there")
def test_rankings_are_reported_before_and_after_vicprice_varies() -> None:
    length = VICPRICE_VARIES + 20 * isage_elec2.EVERY
    result = isage_elec2.run(seed=1, length=1_500, alpha=0.01, reservoir_size=10)
    for method in isage_elec2.METHODS:  # as long as a result of the whole stream
        result[method] *= length // 1_500 + 1
    report = reported(isage_elec2, {"run 0": result})
    for part in isage_elec2.PARTS:
        assert f"{part} the methods" in report.sentence


@pytest.mark.parametrize(("found", "verdict"), [(20, "Equal: 2 of 2"), (None, "Worse: 1 of 2")])
def test_the_verdict_on_sensors_is_of_all_kinds(found: int | None, verdict: str) -> None:
    fault = {"sensor": 1, "rank": 1, "error before": 1.0, "error after": 2.0, "found fast": 3}
    fault |= {"adds": 0.5, "reach": 0.2, "gap": 0.3, "rank of rise": 1}
    faults = [fault | {"kind": "noise", "found": 7}, fault | {"kind": "drift", "found": found}]
    result = {"faults": faults, "curves": [[0.0, 0.0, 0.0]]}
    report = reported(isage_sensors, {"run 0": result})
    assert report.sentence.startswith(verdict)
    assert ("drift (0 of 1" in report.sentence) == (found is None)
    assert ("add at most 0.500 to it" in report.sentence) == (found is None)


@pytest.mark.parametrize(
    ("held", "found"),
    [([True] * 501, 0), ([False] * 7 + [True] * 494, 7), ([True] * 500 + [False], None)],
)
def test_a_sensor_is_found_from_where_it_stays_first(held: list[bool], found: int | None) -> None:
    values = np.column_stack([held, np.full(len(held), 0.5)]).astype(float)
    assert isage_sensors.found_after(np.vstack([values, np.zeros((9, 2))]), 0) == found
    assert len(held) == isage_sensors.FOUND_WITHIN + 1


def test_negative_importances_count_as_none() -> None:
    assert error({"a": 2.0, "b": -1.0}, {"a": 1.0, "b": 0.0}) == 0.0
    assert error({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 3.0}) == 1.0


def test_our_reservoirs_are_fed_beside_those_of_ixai() -> None:
    reservoirs = [GeometricReservoir(size, random.Random(1)) for size in (2, 10)]
    ages = [mean_age([each], lambda each: each.rows, Encoding().observe) for each in reservoirs]
    assert 0.0 < ages[0] < 12.0
    assert 1.0 < ages[1] < 60.0
