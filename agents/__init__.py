"""The Faust agent of each role: a loop over its stage, in an app and consumer group of its own."""

from functools import partial
from typing import Any

from fluxplain import stages
from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.faust.app import FaustWorker, create_worker
from fluxplain.kafka.topics.create import warn_of_joined_partitions
from fluxplain.schemas import stream_name
from fluxplain.stages import Stage, by_stream


def create_agent(config: Config, replica: Replica) -> FaustWorker:
    """Return the worker of a role, or of a shard, with its agent."""
    role = create_worker(config, replica, partial(make_stage, config, replica))
    if replica.role == "join":
        warn_of_joined_partitions(config)

    @role.agent
    async def agent(stream: Any) -> None:
        async for event in stream.noack().events():
            # each message has one turn; where topics are joined, none or several
            async with role.worker.turns(event.message) as turns:
                async for turn in turns:
                    turn.publish(turn.step())
                    await turn.done()

    return role


def make_stage(config: Config, replica: Replica, topic: str, partition: int) -> Stage:
    """Return a new stage of a role for an input partition."""
    stage = stage_class(replica.role)
    made: Stage
    if replica.role == "join":
        made = stage()
    elif replica.role == "model":
        made = stage(config.of_stream(partition), stream_name(topic, partition), replica)
    else:
        made = by_stream(config, stage)
    return made


def stage_class(role: Role) -> Any:
    """Import and return the class of a role's stage, without those of the other roles."""
    return getattr(stages, f"{role.title()}Stage")
