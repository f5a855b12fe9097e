"""What is wrong with the alerts of a scenario is found."""

from typing import Any

import pytest

from tests.deploy.test_grafana import RULES
from tests.measure.alerts.scenarios import SCENARIOS
from tests.measure.alerts.table import problems, written

NAME = "crash-loop"


def found(*fired: tuple[str, int]) -> dict[str, Any]:
    """Return a result with alerts, and the seconds after which they fired."""
    alerts = [{"alert": name, "about": "a", "after": s, "until": 9} for name, s in fired]
    return {"seconds": 100, "fired": alerts, "now": []}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("fired", "wrong"),
    [
        ([("FluxplainCrashLoop", 100)], []),
        ([], ["FluxplainCrashLoop did not fire"]),
        ([("FluxplainCrashLoop", 900)], ["FluxplainCrashLoop fired after 900 s, not within 240 s"]),
        ([("FluxplainCrashLoop", -5)], ["FluxplainCrashLoop fired after -5 s, not within 240 s"]),
        (
            [("FluxplainCrashLoop", 100), ("FluxplainMemory", 50)],
            ["FluxplainMemory fired, but should not"],
        ),
    ],
)
def test_what_is_not_as_expected_is_found(fired: list[tuple[str, int]], wrong: list[str]) -> None:
    assert [*problems(NAME, found(*fired))] == wrong


@pytest.mark.quick
def test_each_rule_has_a_scenario_in_which_it_must_fire() -> None:
    expected = {name for each in SCENARIOS.values() for name in each.expected}
    assert expected == {rule["alert"] for rule in RULES}


@pytest.mark.quick
def test_the_table_has_what_fired_and_what_did_not() -> None:
    rows = written({NAME: found(("FluxplainMemory", 50)), "calm": found()}).splitlines()[-3:]
    assert "| FluxplainMemory | a | **no** | 50 | 9 |" in rows[0]
    assert "| FluxplainCrashLoop | | 240 | **never** | |" in rows[1]
    assert rows[2].endswith("| none | | none | | |")
