"""The model-agent: learns, and asks the model what the explanations need."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.faust.app import FaustWorker, create_worker
from pipeline.parts import Part
from pipeline.stages import ModelStage
from schemas import stream_name


def create(config: Config, part: Part) -> FaustWorker:
    """Return the role's worker, or that of one of its shards."""

    def make_stage(topic: str, partition: int) -> ModelStage:
        return ModelStage(config.of_stream(partition), stream_name(topic, partition), part)

    role = create_worker(config, part, make_stage)

    @role.agent
    async def model(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
