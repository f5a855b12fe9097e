"""The explainer-agent: turns evaluations into explanations."""

from typing import Any

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.faust.app import FaustWorker, create_worker
from fluxplain.stages import ExplainerStage, by_stream


def create(config: Config, replica: Replica) -> FaustWorker:
    """Return the role's worker."""
    role = create_worker(config, replica, lambda *_tp: by_stream(config, ExplainerStage))

    @role.agent
    async def explainer(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
