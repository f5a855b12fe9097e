"""The Faust agents: thin loops over the stages, one app and one consumer group per role.

Each loop has the same steps: take the turns that a message brings (its own; where topics are
joined, none or several), let the stage step, publish the records, be done.
"""

from collections.abc import Callable
from importlib import import_module

from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.faust.app import FaustWorker


def factory(role: Role) -> Callable[[Config, Replica], FaustWorker]:
    """Return the function that makes a role's worker; imports the modules of this role only."""
    create: Callable[[Config, Replica], FaustWorker] = import_module(
        f"fluxplain.agents.{role}"
    ).create
    return create
