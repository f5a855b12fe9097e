"""The Faust agents: thin loops over the stages, one app and one consumer group a role."""

from collections.abc import Callable
from importlib import import_module

from pipeline.config import Config
from pipeline.kafka.worker import RoleWorker
from pipeline.parts import Part, Role


def factory(role: Role) -> Callable[[Config, Part], RoleWorker]:
    """Return what makes a worker of a role; imports what this role needs, and no other's."""
    create: Callable[[Config, Part], RoleWorker] = import_module(f"agents.{role}").create
    return create
