"""The drift-agent: watches the explanations for changes."""

from typing import Any

from pipeline.config import Config
from pipeline.kafka.faust.app import FaustWorker, create_worker
from pipeline.parts import Part
from pipeline.stages import DriftStage, by_stream


def create(config: Config, part: Part) -> FaustWorker:
    """Return the role's worker."""
    role = create_worker(config, part, lambda *_place: by_stream(config, DriftStage))

    @role.agent
    async def drift(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
