"""The tables of the case study, from its results."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from deploy.docs.words import table
from tests.measure.case_study.arms import ARMS, OURS
from tests.measure.case_study.payments import LEAKING, Fault
from tests.measure.case_study.study import Plan, accuracy_places

FAULTS: dict[Fault, str] = {
    "migration": "migration",
    "hidden": "hidden fault",
    "visible": "visible fault",
    "none": "control",
}

TOGETHER = "ours, all together"

NEVER = -np.inf
"""Lead where there is no alarm."""

Results = dict[str, Any]
"""``plan`` and ``runs``: fault, seed, accuracy, and alarms by arm and feature, if there are any."""

First = tuple[int, str]
"""Payments that had arrived at an arm's first alarm, and the feature it names."""


def tables(results: Results) -> str:
    """Return the tables as Markdown: accuracy, leads of each fault, alarms of the control."""
    leads = [_leads(results, fault) for fault in FAULTS if fault != "none"]
    return "\n\n".join((_accuracy(results), *leads, _control(results)))


def _accuracy(results: Results) -> str:
    rows = []
    for fault, title in FAULTS.items():
        shares = np.array([run["accuracy"] for run in _runs(results, fault)])
        rows.append([title, *(_interval(each, "{:.1%}".format) for each in shares.T)])
    places = accuracy_places(Plan(**results["plan"]))
    return table(["stream", *(f"{a:,} to {b:,}" for a, b in places)], rows)


def _leads(results: Results, fault: Fault) -> str:
    rows = []
    for title, arms in _rows():
        firsts = [_first(results, run, arms) for run in _runs(results, fault)]
        leads = np.array([_lead(results, first) for first in firsts])
        found = [first for first, lead in zip(firsts, leads, strict=True) if first and lead > 0]
        named = sum(first[1] == LEAKING for first in found)
        rows.append(
            [
                title,
                f"{len(found)} of {len(firsts)}",
                _interval(leads, _payments),
                f"{named} of {len(found)}" if found and found[0][1] else "–",
            ]
        )
    return table([f"{FAULTS[fault]}: monitor", "in time", "lead", f"names {LEAKING}"], rows)


def _control(results: Results) -> str:
    records = results["plan"]["records"]
    rows = []
    for title, arms in _rows():
        counts = [
            sum(len(places) for arm in arms for places in run["alarms"].get(arm, {}).values())
            for run in _runs(results, "none")
        ]
        rate = f"{np.mean(counts) * 10_000 / records:.2f}"
        rows.append([title, rate, f"{min(counts)} to {max(counts)}"])
    return table(["monitor", "alarms in 10,000 payments", "in a run"], rows)


def _rows() -> Iterator[tuple[str, Sequence[str]]]:
    for arm, title in ARMS.items():
        yield title, (arm,)
    yield TOGETHER, OURS


def _runs(results: Results, fault: str) -> list[Any]:
    return [run for run in results["runs"] if run["fault"] == fault]


def _first(results: Results, run: Any, arms: Sequence[str]) -> First | None:
    """Return the first alarm from the fault on that the control of the same seed lacks.

    An alarm is the fault's own if the same arm and feature alarm later, or never, in the control.
    """
    [control] = [each for each in _runs(results, "none") if each["seed"] == run["seed"]]
    begins = results["plan"]["begins"]
    own = []
    for arm in arms:
        for feature, places in run["alarms"].get(arm, {}).items():
            first = _from(places, begins)
            without = _from(control["alarms"].get(arm, {}).get(feature, []), begins)
            if first is not None and (without is None or first < without):
                own.append((first, feature))
    return min(own, default=None)


def _from(places: Sequence[int], begins: int) -> int | None:
    return next((t for t in places if t >= begins), None)


def _lead(results: Results, first: First | None) -> float:
    return NEVER if first is None else results["plan"]["ends"] - first[0]


def _interval(numbers: Any, shown: Any) -> str:
    low, middle, high = np.quantile(numbers, (0.05, 0.5, 0.95), method="nearest")
    return f"{shown(middle)} ({shown(low)} to {shown(high)})"


def _payments(lead: float) -> str:
    return f"{lead:,.0f}" if np.isfinite(lead) else "never"
