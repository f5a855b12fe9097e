"""A crash at each step of the commit protocol, of each role: the results are the reference's."""

import os
import sys
from pathlib import Path

import pytest

from fluxplain.cli.supervisor import ROLES
from fluxplain.config.replica import Role
from tests.kit.kafka_pipeline import Start, assert_same, reference
from tests.kit.preloaded import Preloaded
from tests.kit.settings import SETTINGS, topic_store, topics, write_config
from tests.kit.streams import observations, with_hostile

pytestmark = pytest.mark.kafka


@pytest.fixture
def config_path(tmp_path: Path, prefix: str, request: pytest.FixtureRequest) -> Path:
    """The suite's settings, with checkpoints in one of the stores."""
    settings = {**SETTINGS, "topics": topics(prefix)}
    if request.param == "topic":
        settings["checkpoint"] = topic_store(tmp_path)
    return write_config(tmp_path / "pipeline.toml", settings)


STEPS = [
    "dies-before-1",
    "dies-between-1-and-2",
    "dies-within-2",
    "dies-between-2-and-3",
    "dies-after-3",
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("step", "config_path"),
    # what a crash leaves behind differs where a checkpoint is written
    [*((step, "topic") for step in STEPS), ("dies-within-2", "directory")],
    indirect=["config_path"],
)
def test_a_crash_there_changes_nothing(
    start: Start, preloaded: Preloaded, step: str, role: Role, config_path: Path
) -> None:
    values = with_hostile(observations(140))
    with start(roles=[other for other in ROLES if other != role]) as pipeline:
        command = [sys.executable, "-m", "tests.kit.faulty_worker", str(config_path), step]
        environment = {**os.environ, **pipeline.environment}
        with pipeline.log_path.open("ab") as log:
            faulty = preloaded.start([*command, role], environment, log)
        try:
            pipeline.feed(values[:100])
            for value in values[100:]:
                pipeline.feed([value])
            pipeline.wait_until(lambda: faulty.poll() is not None)
        finally:
            faulty.kill()
        assert faulty.wait() == -9, "it must die there, or this test shows nothing"
        pipeline.workers.add(role)
        pipeline.wait_until_through(len(values))
    assert_same(pipeline.published, reference(pipeline.config, values))
