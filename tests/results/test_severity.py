"""Which changes are urgent."""

from dataclasses import replace
from typing import Any

import pytest

from fluxplain.results.severity import severity
from fluxplain.schemas.change import Evidence
from tests.kit.records import change, loss_change

OUTLIER = [Evidence(3, feature="a", value=1e9, low=0.0, high=1.0)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"effect_size": 0.2, "loss_before": 0.2, "loss_after": 0.3}, "high"),
        ({"effect_size": 0.2}, "high"),
        ({"effect_size": 0.2, "loss_before": 0.2, "loss_after": 0.2}, "medium"),
        ({"effect_size": 0.05, "loss_before": 0.2, "loss_after": 0.3}, "medium"),
        ({"effect_size": 0.05, "loss_before": 0.2, "loss_after": 0.2}, "low"),
        ({"effect_size": 0.05, "loss_before": 0.2, "loss_after": 0.1}, "low"),
        ({"effect_size": 0.05}, "low"),
        ({"effect_size": 0.05, "evidence": OUTLIER}, "high"),
        ({"effect_size": 0.01, "signal": "trend", "loss_before": 1.0, "loss_after": 1.0}, "medium"),
        ({"effect_size": 0.2, "loss_before": -1.0, "loss_after": -1.05}, "medium"),
        ({"effect_size": 0.2, "loss_before": -1.0, "loss_after": -0.5}, "high"),
        ({"kind": "input", "effect_size": 0.5}, "high"),
        ({"kind": "output", "effect_size": 0.1}, "medium"),
    ],
)
def test_size_loss_and_inputs_make_a_change_urgent(fields: dict[str, Any], expected: str) -> None:
    assert severity(replace(change("a", 1), **fields)) == expected


def test_a_loss_that_rose_is_urgent_and_one_that_fell_is_not() -> None:
    rose = loss_change(1)
    assert severity(rose) == "high"
    assert severity(replace(rose, before=rose.after, after=rose.before)) == "low"
    assert severity(replace(rose, before=0.3, after=0.32, direction="rose")) == "medium"
