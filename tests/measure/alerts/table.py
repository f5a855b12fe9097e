"""The table of what fired, and what is wrong with it."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.measure.alerts.scenarios import SCENARIOS

HEAD = """# Alerts on a live pipeline

Written by `python -m tests.measure.alerts`: Prometheus with the shipped rules and intervals, and
workers as processes on the embedded broker, with four observations a second. Seconds count from the
begin of what is wrong; those until an alert is resolved count from its end. — is an alert that
still fired when the run ended.

| scenario | lasts s | alert | about | expected within s | fired after s | resolved after s |
| --- | --- | --- | --- | --- | --- | --- |
"""

Found = Mapping[str, Any]
"""What fired in a scenario: seconds after its begin, and after its end until it was resolved."""


def problems(name: str, found: Found) -> Iterator[str]:
    """Yield what is not as expected in a scenario."""
    scenario = SCENARIOS[name]
    first: dict[str, int] = {}
    for each in found["fired"]:
        first[each["alert"]] = min(each["after"], first.get(each["alert"], each["after"]))
    for alert, within_s in scenario.expected.items():
        if alert not in first:
            yield f"{alert} did not fire"
        elif not 0 <= first[alert] <= within_s:
            yield f"{alert} fired after {first[alert]} s, not within {within_s:.0f} s"
    for alert in sorted(first.keys() - scenario.expected.keys() - scenario.allowed):
        yield f"{alert} fired, but should not"


def written(results: Mapping[str, Found]) -> str:
    """Return the table as Markdown."""
    return HEAD + "".join(
        f"{row}\n" for name, found in results.items() for row in _rows(name, found)
    )


def _rows(name: str, found: Found) -> Iterator[str]:
    scenario = SCENARIOS[name]
    begin = f"| {scenario.what} | {found['seconds']}"
    seen = set()
    for each in found["fired"]:
        alert, after = each["alert"], each["after"]
        if (alert, each["about"]) in seen:
            continue  # another partition, or again
        seen.add((alert, each["about"]))
        within_s = scenario.expected.get(alert)
        expected = (
            f"{within_s:.0f}"
            if within_s
            else "may"
            if each["alert"] in scenario.allowed
            else "**no**"
        )
        until = "—" if alert in found["now"] else each["until"]
        yield f"{begin} | {alert} | {each['about']} | {expected} | {after} | {until} |"
    fired = {each["alert"] for each in found["fired"]}
    for alert, within_s in scenario.expected.items():
        if alert not in fired:
            yield f"{begin} | {alert} | | {within_s:.0f} | **never** | |"
    if not fired and not scenario.expected:
        yield f"{begin} | none | | none | | |"
