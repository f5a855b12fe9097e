"""What the experiments of iSAGE count on, and each of them small."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.measure.experiments import isage_elec2, isage_imputers, isage_sensors, isage_table_2
from tests.measure.experiments.array_sage import random_draws, revealed
from tests.measure.experiments.experiment import Experiment, Report
from tests.measure.experiments.forests import as_arrays, concept_records, switching_stream
from tests.measure.experiments.isage_imputers import (
    FEATURE,
    NO_COMMISSION_FROM,
    TOLD_BY,
    conditional,
)
from tests.measure.experiments.isage_sensors import FOUND_WITHIN, found_after
from tests.measure.experiments.sensor_network import FAULTS, break_sensor, readings
from tests.measure.experiments.streams import VICPRICE_VARIES


def test_conditional_draws_are_possible_with_what_is_revealed() -> None:
    """Whatever is revealed, commission is 0 exactly where salary is at least 75,000."""
    features, xs, _ = as_arrays(concept_records(1, 1, 300))
    rng = np.random.default_rng(1)
    orders, chosen = random_draws(rng, len(xs), len(features), 5)
    hidden = conditional(features, xs, orders, chosen, rng)
    rows = np.where(revealed(orders)[:, :, None], xs[:, None, None], hidden)
    salary, commission = (rows[..., features.index(f)] for f in (TOLD_BY, FEATURE))
    assert ((commission == 0.0) == (salary >= NO_COMMISSION_FROM)).all()
    # by whole observations it is not so: the draws have something to put right
    joint = np.where(revealed(orders)[:, :, None], xs[:, None, None], xs[chosen][:, None])
    salary, commission = (joint[..., features.index(f)] for f in (TOLD_BY, FEATURE))
    assert ((commission == 0.0) != (salary >= NO_COMMISSION_FROM)).any()


def test_records_have_the_labels_of_the_concept_in_use() -> None:
    records, concepts = switching_stream(0.02, 2_000, seed=1)
    assert set(concepts.tolist()) == set(range(6))
    for (x, y), concept in zip(records, concepts.tolist(), strict=True):
        if concept == 0:  # the one of function 1
            assert y == (0 if 40 <= float(x["age"]) < 60 else 1)


@pytest.mark.parametrize(
    ("held", "found"),
    [([True] * 501, 0), ([False] * 7 + [True] * 494, 7), ([True] * 500 + [False], None)],
)
def test_a_sensor_is_found_from_where_it_stays_first(held: list[bool], found: int | None) -> None:
    values = np.column_stack([held, np.full(len(held), 0.5)]).astype(float)
    assert found_after(np.vstack([values, np.zeros((9, 2))]), 0) == found
    assert len(held) == FOUND_WITHIN + 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_changes_one_sensor_while_it_lasts(fault: str) -> None:
    pressures = readings(np.random.default_rng(1), 1_500)
    broken = pressures.copy()
    break_sensor(broken, 3, fault, range(1000, 1200), np.random.default_rng(2))
    changed = broken != pressures
    assert changed[1001:1200, 3].all()
    changed[1000:1200, 3] = False
    assert not changed.any()


def reported(experiment: Experiment, *results: Any) -> Report:
    """Return the report on results after a turn through JSON, drawn once."""
    runs = {f"run {r}": result for r, result in enumerate(json.loads(json.dumps(results)))}
    report = experiment.report(runs)
    assert report.draw
    report.draw(Figure())
    return report


def test_table_2_small() -> None:
    result = isage_table_2.run(
        seed=1, length=150, windows=[20, 40, 60, 100], training=300, truth_records=200
    )
    [reached, below] = reported(isage_table_2.EXPERIMENT, result, result).lines
    counts = [int(count) for line in (reached, below) for count in line.ours.split(" / ")]
    assert len(counts) == 5
    assert all(0 <= count <= 12 for count in counts)


def test_table_2_counts_cells() -> None:
    ours = {
        method: [value / 2 for value in isage_table_2.PAPER["MSE"]["iSAGE"]["low"]]
        for method in (
            *(f"iSAGE, m = {m}" for m in isage_table_2.SAMPLES),
            *(f"sliding window, m = {m}" for m in isage_table_2.WINDOW_SAMPLES),
        )
    }
    floor = {f"m = {m}": [1.0] for m in isage_table_2.SAMPLES}
    errors = {"MSE": ours, "MAE": ours}
    result = dict.fromkeys(isage_table_2.SWITCHES, errors) | {"floor": {"MSE": floor, "MAE": floor}}
    report = reported(isage_table_2.EXPERIMENT, result)
    assert [line.ours for line in report.lines] == ["12 / 12 / 12", "0 / 0"]
    assert "12 of the 12 printed errors are smaller" in report.sentence


def test_imputers_small() -> None:
    result = isage_imputers.run(seed=1, trees=1, length=250, true_records=100)
    assert len(reported(isage_imputers.EXPERIMENT, result, result).lines) == 2


@pytest.mark.parametrize(("interventional", "says"), [(9.0, "reaches"), (5.0, "misses")])
def test_the_sentence_on_imputers_is_computed(interventional: float, says: str) -> None:
    names = isage_imputers.run(seed=1, trees=1, length=120, true_records=50)
    result = dict.fromkeys(names, (0.02, 0.01)) | {
        f"interventional iSAGE, m = {isage_imputers.DEFAULT}": (interventional, 1.0)
    }
    sentence = reported(isage_imputers.EXPERIMENT, result).sentence
    assert sentence.startswith(f"interventional iSAGE {says} the target of > 5")
    assert "observational iSAGE reaches the target of ≤ 2" in sentence


def test_elec2_small(elec2_is_there: None) -> None:
    length = VICPRICE_VARIES + 20 * isage_elec2.EVERY
    result = isage_elec2.run(seed=1, length=1_500, alpha=0.01, reservoir_size=10)
    for method in isage_elec2.METHODS:  # as long as a result of the whole stream
        result[method] *= length // 1_500 + 1
    report = reported(isage_elec2.EXPERIMENT, result)
    assert len(report.lines) == 1
    for part in isage_elec2.PARTS:
        assert f"{part} the methods" in report.sentence


def test_sensors_small() -> None:
    result = isage_sensors.run(
        seed=1, faults=["offset", "stuck"], hours=710, begins=[200, 205], lasts=100
    )
    report = reported(isage_sensors.EXPERIMENT, result)
    [line] = report.lines
    assert line.ours.endswith("(target 2)")
    assert [fault["kind"] for fault in result["faults"]] == ["offset", "stuck"]


@pytest.mark.parametrize(("found", "verdict"), [(20, "Equal: 2 of 2"), (None, "Worse: 1 of 2")])
def test_the_verdict_on_sensors_is_of_all_kinds(found: int | None, verdict: str) -> None:
    fault = {"sensor": 1, "rank": 1, "error before": 1.0, "error after": 2.0}
    faults = [fault | {"kind": "noise", "found": 7}, fault | {"kind": "drift", "found": found}]
    result = {"faults": faults, "curves": [[0.0, 0.0, 0.0]]}
    sentence = reported(isage_sensors.EXPERIMENT, result).sentence
    assert sentence.startswith(verdict)
    assert ("drift (0 of 1" in sentence) == (found is None)
