"""Lets the caller time a stage's model calls; stages never read a clock."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol, TypeVar

from fluxplain.schemas.methods import Method

T = TypeVar("T")

Work = Method | Literal["prediction", "reasons", "contrasts", "learning"]
"""The purpose of a model call."""


class Meter(Protocol):
    """Times the calls of a model."""

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        """Make the call once; ``shares`` maps each purpose to its number of inputs."""
        ...
