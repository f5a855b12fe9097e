"""The join-agent: puts features, and labels that come later, in one order."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.app import create_worker
from pipeline.kafka.topics import warn_of_joined_partitions
from pipeline.kafka.worker import RoleWorker
from pipeline.parts import Part
from pipeline.stages import JoinStage


def create(config: Config, part: Part) -> RoleWorker:
    """Return the role's worker."""
    worker = create_worker(config, part, lambda _topic, _partition: JoinStage())
    warn_of_joined_partitions(config)

    @worker.app.agent(  # type: ignore[untyped-decorator]
        worker.source(), name="join", concurrency=1
    )
    async def join(stream: Any) -> None:
        async for event in stream.noack().events():
            await worker.handle(event)

    return worker
