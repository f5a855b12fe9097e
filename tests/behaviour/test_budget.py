"""A time budget is kept by an announcement, which every later start takes at the same place."""

from typing import Any

import orjson
import pytest

from tests.kit.kafka_pipeline import JOINED, Start, assert_same, records_of, reference_of
from tests.kit.settings import SETTINGS
from tests.kit.streams import observations


@pytest.fixture
def tables() -> dict[str, Any]:
    """A budget that nothing can keep."""
    return {
        "explain": {**SETTINGS["explain"], "budget_ms": 0.001},
        "control": {"topic": True},
    }


@pytest.mark.embedded
def test_less_is_explained_at_the_same_place_for_everybody(start: Start) -> None:
    values = observations(900)
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:300])
        pipeline.wait_until_idle()
        pipeline.kill("model")
        pipeline.kill("join")
        pipeline.send(values[300:])
        pipeline.wait_until_idle()
        joined = pipeline.joined(0)
    announced = [orjson.loads(m.value or b"") for m in joined if "control" in m.origin[0]]
    assert announced[0] == {"every": 2, "model": None, "withdraw": None}
    assert_same(pipeline.published, reference_of(pipeline.config, joined))
    explanations = records_of(pipeline.published, "explanations")
    assert max(each["skipped"] for each in explanations) > 100
