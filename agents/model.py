"""The model-agent: learns, and asks the model what the explanations need."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.app import create_worker
from pipeline.kafka.worker import RoleWorker
from pipeline.parts import Part
from pipeline.stages import ModelStage
from schemas import stream_name


def create(config: Config, part: Part) -> RoleWorker:
    """Return the role's worker, or that of one of its shards."""

    def make_stage(topic: str, partition: int) -> ModelStage:
        return ModelStage(config.of_stream(partition), stream_name(topic, partition), part)

    worker = create_worker(config, part, make_stage)

    @worker.app.agent(  # type: ignore[untyped-decorator]
        worker.source(), name="model", concurrency=1
    )
    async def model(stream: Any) -> None:
        async for event in stream.noack().events():
            await worker.handle(event)

    return worker
