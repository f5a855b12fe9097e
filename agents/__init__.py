"""The Faust agents: thin loops over the stages, one app and one consumer group a role."""

from collections.abc import Callable

import faust

from agents import drift, explainer, model
from pipeline.config import Config, Role

APPS: dict[Role, Callable[[Config], faust.App]] = {
    "model": model.create_app,
    "explainer": explainer.create_app,
    "drift": drift.create_app,
}
"""Role → what makes its Faust app."""

__all__ = ["APPS"]
