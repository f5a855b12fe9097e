"""The Faust agents: thin loops over the stages, one app and one consumer group a role."""

from collections.abc import Callable

from agents import drift, explainer, model
from pipeline.config import Config
from pipeline.kafka.worker import RoleWorker
from pipeline.parts import Part, Role

WORKERS: dict[Role, Callable[[Config, Part], RoleWorker]] = {
    "model": model.create,
    "explainer": explainer.create,
    "drift": drift.create,
}
"""Role → what makes a worker of it."""

__all__ = ["WORKERS"]
