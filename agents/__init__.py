"""The Faust agents: thin loops over the stages, one app and one consumer group a role.

Each loop reads alike: of a message that Faust read, take those whose turn it is (its own; where
topics are joined, none or several), let the stage step, publish what it returns, be done.
"""

from collections.abc import Callable
from importlib import import_module

from pipeline.config import Config
from pipeline.kafka.faust.app import FaustWorker
from pipeline.parts import Part, Role


def factory(role: Role) -> Callable[[Config, Part], FaustWorker]:
    """Return what makes a worker of a role; imports what this role needs, and no other's."""
    create: Callable[[Config, Part], FaustWorker] = import_module(f"agents.{role}").create
    return create
