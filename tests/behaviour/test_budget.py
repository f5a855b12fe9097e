"""A time budget is kept by an announcement, which every later start takes at the same place."""

from pathlib import Path

import orjson
import pytest

from fluxplain.cli.supervisor import ROLES
from fluxplain.config.replica import Role
from tests.kit.kafka_pipeline import Start, assert_same, reference_of
from tests.kit.settings import SETTINGS, topics, write_config
from tests.kit.streams import observations

JOINED: tuple[Role, ...] = ("join", *ROLES)


@pytest.fixture
def config_path(tmp_path: Path, prefix: str) -> Path:
    """Settings with a budget that nothing can keep."""
    settings = {
        **SETTINGS,
        "explain": {**SETTINGS["explain"], "budget_ms": 0.001},
        "control": {"topic": True},
        "topics": topics(prefix),
    }
    return write_config(tmp_path / "pipeline.toml", settings)


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
    skipped = [
        orjson.loads(value)["skipped"]
        for key, values_ in pipeline.published.items()
        if key[0] == "explanations"
        for value in values_
    ]
    assert max(skipped) > 100
