"""Converts the members of River's ensembles, and the model that later members are clones of."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from river.ensemble.streaming_random_patches import BaseSRPEstimator


def with_members(model: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a River ensemble with converted members; itself if its members stay as they are."""
    prototype = convert(model.model)
    if prototype is model.model:
        return model
    found = deepcopy(model)
    found.model = prototype
    found.data = [_converted(each, convert) for each in found.data]
    return found


def _converted(member: Any, convert: Callable[[Any], Any]) -> Any:
    if not isinstance(member, BaseSRPEstimator):
        return convert(member)
    for each in (member, member._background_learner):
        if each is not None:
            each.model = convert(each.model)
    return member
