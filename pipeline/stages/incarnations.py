"""Which incarnations a stage accepts: those whose numbers are registered."""

from collections.abc import Callable
from typing import Any

from fluxplain.schemas import BadRecordError
from fluxplain.stages.stage import state_without

IsLife = Callable[[int], bool]
"""Returns whether a number in an incarnation is registered."""


class ChecksIncarnations:
    """Base of the stages that read records with incarnations.

    Attributes
    ----------
    is_life
        Injected by the worker; None accepts all incarnations.
    """

    is_life: IsLife | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "is_life")

    def check_incarnation(self, incarnation: str) -> None:
        """Raise ``BadRecordError`` for an unregistered incarnation: it would end the real one."""
        numbers = map(int, incarnation.split("/"))
        if self.is_life is not None and not all(map(self.is_life, numbers)):
            raise BadRecordError(f"no worker has registered the incarnation {incarnation}")
