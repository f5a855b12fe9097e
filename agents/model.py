"""The model-agent: predicts, evaluates the model for the explanations, and learns."""

from typing import Any

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.faust.app import FaustWorker, create_worker
from fluxplain.schemas import stream_name
from fluxplain.stages import ModelStage


def create(config: Config, replica: Replica) -> FaustWorker:
    """Return the role's worker, or that of one of its shards."""

    def make_stage(topic: str, partition: int) -> ModelStage:
        return ModelStage(config.of_stream(partition), stream_name(topic, partition), replica)

    role = create_worker(config, replica, make_stage)

    @role.agent
    async def model(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
