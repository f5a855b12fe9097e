"""Each role crashes at each step of the commit protocol: the results are the reference's."""

from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import ROLES
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


@pytest.mark.parametrize(
    ("step", "tables"),
    # what a crash leaves behind differs where a checkpoint is written
    [*((step, "topic") for step in STEPS), ("dies-within-2", "directory")],
    indirect=["tables"],
)
def test_a_crash_there_changes_nothing(start: Start, start_faulty: StartFaulty, step: str) -> None:
    values = with_hostile(observations(90))
    with start(roles=[]) as pipeline:
        faulty = {role: start_faulty(pipeline, step, role) for role in ROLES}
        pipeline.feed(values[:60])
        for value in values[60:]:
            pipeline.feed([value])
        for role in ROLES:  # who is behind gets more when the next worker goes on
            pipeline.wait_until(lambda role=role: faulty[role].poll() is not None)  # type: ignore[misc]
            assert faulty[role].wait() == -9, "it must die there, or this test shows nothing"
            pipeline.workers.add(role)
        pipeline.finish(values)
