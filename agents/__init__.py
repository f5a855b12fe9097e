"""The Faust agents: thin loops over the stages, one app and one consumer group a role.

Each loop reads alike: of a message that Faust read, take those whose turn it is (its own; where
topics are joined, none or several), let the stage step, publish what it returns, be done.
"""

from collections.abc import Callable
from importlib import import_module

from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.faust.app import FaustWorker


def factory(role: Role) -> Callable[[Config, Replica], FaustWorker]:
    """Return what makes a worker of a role; imports what this role needs, and no other's."""
    create: Callable[[Config, Replica], FaustWorker] = import_module(
        f"fluxplain.agents.{role}"
    ).create
    return create
