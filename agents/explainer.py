"""The explainer-agent: turns evaluations into explanations."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.app import create_worker
from pipeline.kafka.worker import RoleWorker
from pipeline.parts import Part
from pipeline.stages import ExplainerStage, by_stream


def create(config: Config, part: Part) -> RoleWorker:
    """Return the role's worker."""
    worker = create_worker(config, part, lambda *_place: by_stream(config, ExplainerStage))

    @worker.app.agent(  # type: ignore[untyped-decorator]
        worker.source(), name="explainer", concurrency=1
    )
    async def explainer(stream: Any) -> None:
        async for event in stream.noack().events():
            await worker.handle(event)

    return worker
