"""How what a stage's model takes becomes known to whoever has a clock; a stage has none."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol, TypeVar, runtime_checkable

from schemas.explanation import Method

T = TypeVar("T")

Work = Method | Literal["prediction", "learning"]
"""What a model is called for."""


class Meter(Protocol):
    """Makes the calls of a model."""

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        """Make the call once; return what it returns, and raise what it raises.

        Parameters
        ----------
        shares
            What it is for, each with how many of its inputs.
        call
            The call.
        """
        ...


@runtime_checkable
class Metered(Protocol):
    """A stage whose model's calls may be metered; a meter is no part of its state."""

    meter: Meter | None
