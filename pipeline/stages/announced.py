"""Models that are announced while the pipeline runs: taken over, or withdrawn before that.

A stage does not decide on its own whether an announced model is there, since that depends on the
machine. It stops at the announcement; its caller looks, decides for all shards and all later
starts, and only then lets the stage carry that out.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pipeline.stages.base import Message
    from schemas import Record
    from schemas.control import NewModel

Decision = Literal["taken", "withdrawn"]
"""Whether an announced model takes over or was withdrawn."""


class NotYetError(RuntimeError):
    """Something that was announced is not there yet. Without it nothing may go on."""


class Found(NamedTuple):
    """What the file of an announced model holds, or why it can never be used."""

    model: Any
    error: ValueError | None = None


class Models(Protocol):
    """Where announced models are."""

    def get(self, sha256: str) -> Any:
        """Return a model.

        Raises
        ------
        NotYetError
            If it is not there.
        ValueError
            If it can never be used.
        """
        ...


@runtime_checkable
class Exchanges(Protocol):
    """A stage whose model may be replaced.

    Attributes
    ----------
    models
        Where announced models are; no part of the state.
    """

    models: Models | None

    @property
    def awaited(self) -> "NewModel | None":
        """The announced model that the next step waits for; None if it waits for none."""
        ...

    @property
    def announcement(self) -> "Message | None":
        """The message that announced the awaited model; None if there is none."""
        ...

    def find(self) -> Found:
        """Load the awaited model, which changes no state; may be called from any thread.

        Raises
        ------
        NotYetError
            If it is not there.
        """
        ...

    def is_withdrawn_by(self, message: "Message") -> bool:
        """Return whether a message behind the announcement withdraws it; from any thread."""
        ...

    def take_over(self, found: Found) -> "Sequence[Record]":
        """Go on with what :meth:`find` returned; return what is published.

        A model that cannot take over becomes a dead letter, and the old one stays.
        """
        ...

    def withdraw(self) -> "Sequence[Record]":
        """Go on with the old model; return what is published."""
        ...


def settled(stage: Exchanges, ahead: "Iterable[Message]" = ()) -> "Sequence[Record]":
    """Decide about the awaited model of a stage, if there is one, and carry that out.

    The model is taken if it is there, else it must be withdrawn by a later message.

    Parameters
    ----------
    stage
        It may wait for a model.
    ahead
        The messages behind those that the stage was given.

    Raises
    ------
    NotYetError
        If the model is neither there nor withdrawn.
    """
    if stage.awaited is None:
        return []
    try:
        found = stage.find()
    except NotYetError as error:
        if any(map(stage.is_withdrawn_by, ahead)):
            return stage.withdraw()
        raise NotYetError(f"{error}{or_withdraw(stage.awaited)}") from error
    return stage.take_over(found)


def or_withdraw(model: "NewModel") -> str:
    """Return what else helps where a model is not there, as the end of a sentence."""
    return f", or withdraw it: `fluxplain model withdraw {shlex.quote(model.version)}`"
