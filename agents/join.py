"""The join-agent: puts features, and labels that come later, in one order."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.faust.app import FaustWorker, create_worker
from pipeline.kafka.topics import warn_of_joined_partitions
from pipeline.parts import Part
from pipeline.stages import JoinStage


def create(config: Config, part: Part) -> FaustWorker:
    """Return the role's worker."""
    role = create_worker(config, part, lambda *_place: JoinStage())
    warn_of_joined_partitions(config)

    @role.agent
    async def join(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
