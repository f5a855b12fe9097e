"""A crash at each step of the commit protocol, of each role: the results are the reference's."""

from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import ROLES
from fluxplain.config.replica import Role
from tests.kit.kafka_pipeline import Start, StartFaulty
from tests.kit.settings import topic_store
from tests.kit.streams import observations, with_hostile

pytestmark = pytest.mark.kafka


@pytest.fixture
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Checkpoints in one of the stores."""
    return {"checkpoint": topic_store(tmp_path)} if request.param == "topic" else {}


STEPS = [
    "dies-before-1",
    "dies-between-1-and-2",
    "dies-within-2",
    "dies-between-2-and-3",
    "dies-after-3",
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("step", "tables"),
    # what a crash leaves behind differs where a checkpoint is written
    [*((step, "topic") for step in STEPS), ("dies-within-2", "directory")],
    indirect=["tables"],
)
def test_a_crash_there_changes_nothing(
    start: Start, start_faulty: StartFaulty, step: str, role: Role
) -> None:
    values = with_hostile(observations(140))
    with start(roles=[other for other in ROLES if other != role]) as pipeline:
        faulty = start_faulty(pipeline, step, role)
        pipeline.feed(values[:100])
        for value in values[100:]:
            pipeline.feed([value])
        pipeline.wait_until(lambda: faulty.poll() is not None)
        assert faulty.wait() == -9, "it must die there, or this test shows nothing"
        pipeline.workers.add(role)
        pipeline.finish(values)
