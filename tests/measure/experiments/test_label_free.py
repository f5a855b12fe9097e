"""The experiment with late labels: what it runs, and what its report counts."""

from itertools import islice
from typing import Any

import pytest

from tests.measure.experiments import label_free
from tests.measure.experiments.label_free import CASES, WATCHED


@pytest.mark.parametrize("name", ["takeover", "labels"])
def test_a_small_run_has_all_methods(name: str) -> None:
    found = label_free.run(name=name, pretraining=300, before=400, after=400, delay=150, seed=1)
    assert found.keys() == WATCHED.keys()


@pytest.mark.quick
def test_only_the_labels_change() -> None:
    case = CASES["labels"]
    drifting, still = ([*islice(each(1, 500), 1_000)] for each in (case.stream, case.control))
    assert [x for x, _ in drifting] == [x for x, _ in still]
    assert drifting[:500] == still[:500]
    assert drifting != still


def test_nothing_is_seen_before_the_labels_where_only_these_change() -> None:
    found = label_free.run(name="labels", pretraining=300, before=400, after=400, delay=399, seed=1)
    assert {first for _, first in found.values()} == {None}


@pytest.mark.quick
def test_an_alarm_that_comes_without_the_drift_too_finds_none() -> None:
    drifting = {"a": [50, 120], "b": [160]}
    compared = label_free._compared
    assert compared(drifting, {"a": [], "b": []}, 100) == (1, 21)
    assert compared(drifting, {"a": [50, 120], "b": [170]}, 100) == (1, 61)
    assert compared(drifting, {"a": [110], "b": [150]}, 100) == (1, None)


def results(**delays: int | None) -> dict[str, Any]:
    found = {watched: (0, delays.get(watched)) for watched in WATCHED}
    return {task.key: found for task in label_free.tasks(2)}


@pytest.mark.quick
def test_the_report_counts_the_runs_in_which_ishap_is_first() -> None:
    first = label_free.report(results(ishap=40, ipdp=60, loss=2_100))
    assert "| 40 (40–40); 2 of 2 | 60 (60–60); 2 of 2 | never |" in first.table
    assert first.table.count("| 2 of 2 | 2 of 2 |") == len(CASES)
    later = label_free.report(results(ishap=40, ipdp=30, loss=20))
    assert later.table.count("| 0 of 2 | 0 of 2 |") == len(CASES)
