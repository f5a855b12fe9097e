"""The case study: its stream, its monitors, its report, and the page that shows it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.measure.case_study.__main__ import RESULTS, measured, write
from tests.measure.case_study.arms import ARMS, adwin, products
from tests.measure.case_study.payments import FRAUD, LEAKING, STRENGTH, Fault, payments
from tests.measure.case_study.report import tables
from tests.measure.case_study.study import Plan

PAGE = Path("deploy/docs/case-study.md")


@pytest.mark.quick
@pytest.mark.parametrize("fault", ["migration", "hidden", "visible"])
def test_only_the_broken_fields_differ_and_only_in_the_fault(fault: Fault) -> None:
    control, faulty = (payments(300, each, 100, 200, seed=1) for each in ("none", fault))
    assert control[:100] + control[200:] == faulty[:100] + faulty[200:]
    hidden: dict[str, float] = {LEAKING: 0.0} | ({"amount": 0.0} if fault == "migration" else {})
    for (x, y), (broken, same) in zip(control[100:200], faulty[100:200], strict=True):
        assert y == same
        assert x | hidden == broken | hidden


@pytest.mark.quick
def test_hidden_scores_have_the_distribution_of_before_and_follow_the_outcome() -> None:
    faulty = payments(20_000, "hidden", 0, 20_000, seed=1)
    scores, labels = np.array([(x[LEAKING], y) for x, y in faulty]).T
    assert np.quantile(scores, (0.25, 0.5, 0.75)) == pytest.approx((0.25, 0.5, 0.75), abs=0.02)
    assert ((scores > 1.0 - FRAUD) == labels).mean() == pytest.approx(0.97, abs=0.01)


@pytest.mark.quick
def test_a_migration_moves_scores_first_and_then_amounts() -> None:
    n = 20_000
    control, moved = (payments(n, fault, 0, n, seed=1) for fault in ("none", "migration"))

    def share(field: str) -> list[float]:
        differ = [
            x[field] != other[field] for (x, _), (other, _) in zip(control, moved, strict=True)
        ]
        return [float(part.mean()) for part in np.split(np.array(differ), 8)]

    full = STRENGTH
    expected = [0.1 * full, 0.3 * full, 0.5 * full, 0.7 * full, 0.9 * full, full, full, full]
    assert share(LEAKING) == pytest.approx(expected, abs=0.03)
    assert share("amount") == pytest.approx([0, 0, 0, 0.1, 0.3, 0.5, 0.7, 0.9], abs=0.03)
    amounts = [x["amount"] for x, _ in control]
    last = range(n - 100, n)
    assert all(moved[t][0]["amount"] in amounts[t - 1 : t + 1] for t in last)
    scores = [x[LEAKING] for x, _ in moved[n // 2 :]]
    assert np.quantile(scores, (0.25, 0.5, 0.75)) == pytest.approx((0.25, 0.5, 0.75), abs=0.02)


@pytest.mark.quick
def test_a_fall_is_no_rise() -> None:
    errors = np.repeat([1.0, 0.0], 300)
    assert adwin(errors)
    assert not adwin(errors, rises_only=True)
    assert adwin(1.0 - errors, rises_only=True)


@pytest.mark.quick
def test_products_show_how_an_input_goes_with_the_label() -> None:
    labels = [t % 2 == 0 for t in range(2_000)]
    numbers = np.where(labels, 1.0, -1.0) * (np.arange(2_000) >= 1_000)
    [means] = products({"a": numbers}, labels).values()
    assert means[:1_000].mean() == 0.0
    assert means[1_000:].mean() == pytest.approx(0.5)


def run_of(fault: str, **alarms: Any) -> dict[str, Any]:
    return {"fault": fault, "seed": 1, "accuracy": [0.9, 0.9, 0.9, 0.8], "alarms": alarms}


@pytest.mark.quick
def test_an_alarm_that_comes_without_the_fault_too_gives_no_lead() -> None:
    plan = Plan(records=1_000, begins=300, ends=700, delay=200)._asdict()
    early = {"amount": [400], LEAKING: [500]}
    runs = [
        run_of("migration", ks={LEAKING: [450]}),
        run_of("hidden", ks=early, psi={LEAKING: [100, 800]}),
        run_of("visible", ks=early),
        run_of("none", ks={"amount": [200, 400]}),
    ]
    lines = tables({"plan": plan, "runs": runs}).splitlines()
    assert "| stream | 0 to 300 | 300 to 500 | 500 to 700 | 700 to 900 |" in lines
    assert [line for line in lines if line.startswith(f"| {ARMS['ks']} |")] == [
        f"| {ARMS['ks']} | 1 of 1 | 250 (250 to 250) | 1 of 1 |",
        f"| {ARMS['ks']} | 1 of 1 | 200 (200 to 200) | 1 of 1 |",
        f"| {ARMS['ks']} | 1 of 1 | 200 (200 to 200) | 1 of 1 |",
        f"| {ARMS['ks']} | 20.00 | 2 to 2 |",
    ]
    assert f"| {ARMS['psi']} | 0 of 1 | -100 (-100 to -100) | – |" in lines


def test_a_small_study_has_all_tables(tmp_path: Path) -> None:
    plan = Plan(pretraining=300, records=800, begins=300, ends=600, delay=100)
    write(tmp_path / "results.json", measured(plan, range(1, 2)))
    text = tables(json.loads((tmp_path / "results.json").read_text()))
    assert all(title in text for title in ARMS.values())


@pytest.mark.quick
def test_the_page_shows_the_tables_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for each in tables(json.loads(RESULTS.read_text(encoding="utf-8"))).split("\n\n"):
        assert each.strip() in page


@pytest.mark.quick
def test_accuracy_stays_flat_in_the_migration_and_collapses_after_it() -> None:
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"]
    shares = np.array([run["accuracy"] for run in runs if run["fault"] == "migration"])
    before, *during, after = np.median(shares, axis=0)
    assert during == pytest.approx([before] * len(during), abs=0.01)
    assert after < before - 0.05
