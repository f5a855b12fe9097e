"""The join-agent: merges features, late labels and control records into one topic."""

from typing import Any

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.faust.app import FaustWorker, create_worker
from fluxplain.kafka.topics.create import warn_of_joined_partitions
from fluxplain.stages import JoinStage


def create(config: Config, replica: Replica) -> FaustWorker:
    """Return the role's worker."""
    role = create_worker(config, replica, lambda *_tp: JoinStage())
    warn_of_joined_partitions(config)

    @role.agent
    async def join(stream: Any) -> None:
        async for event in stream.noack().events():
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role
