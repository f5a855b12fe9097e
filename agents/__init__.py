"""The Faust agents: thin loops over the stages, one app and one consumer group a role."""

from collections.abc import Callable

from agents import drift, explainer, model
from pipeline.config import Config, Role
from pipeline.kafka.worker import RoleWorker

WORKERS: dict[Role, Callable[[Config], RoleWorker]] = {
    "model": model.create,
    "explainer": explainer.create,
    "drift": drift.create,
}
"""Role → what makes its worker."""

__all__ = ["WORKERS"]
