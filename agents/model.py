"""The model-agent: learns, and asks the model what the explanations need."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.app import create_worker
from pipeline.kafka.worker import RoleWorker
from pipeline.stages import ModelStage
from schemas import stream_name


def create(config: Config) -> RoleWorker:
    """Return the role's worker."""
    worker = create_worker(
        config, "model", lambda topic, partition: ModelStage(config, stream_name(topic, partition))
    )

    @worker.app.agent(  # type: ignore[untyped-decorator]
        worker.source("features"), name="model", concurrency=1
    )
    async def model(stream: Any) -> None:
        async for event in stream.noack().events():
            await worker.handle(event)

    return worker
