"""The model in use, and the announced model that may replace it.

A stage does not decide on its own whether an announced model is there, since that depends on the
machine. It stops at the announcement; its caller looks for the model, decides for all shards and
all later starts, and only then lets the stage carry that out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.schemas import BadRecordError, Change, Control, Record
from fluxplain.schemas.control import NewModel
from fluxplain.stages.awaiting import or_withdraw
from fluxplain.stages.base import Message, state_without
from fluxplain.stages.intake.sample import Announced
from fluxplain.stages.intake.validation import decoded_control

MOST_WITHDRAWN = 100
"""Versions to remember until their withdrawal is read in its own place; then the oldest go."""


class Found(NamedTuple):
    """The model in an announced file, or why it can never be used."""

    model: Any
    error: ValueError | None = None


class Models(Protocol):
    """The folder of announced models."""

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


class Awaited(NamedTuple):
    """An announced model that has not taken over, and the message that announced it."""

    model: NewModel
    message: Message


class Exchange:
    """The model in use. Control records replace it.

    Attributes
    ----------
    model, version, evaluate
        The model in use, its name if it has one, and its evaluator.
    awaited
        The announced model that the next step waits for, if any.
    models
        The folder of announced models; injected, and no part of the state.
    """

    models: Models | None = None

    def __init__(self, config: Config, stream: str) -> None:
        from fluxplain.evaluate import evaluator_for  # noqa: PLC0415  loads River

        self.model = config.make_model()
        self.version = config.model.version
        self._settings = config.model
        self._label = config.label.type
        self._stream = stream
        self._topic = config.topic(Control.TOPIC)
        self.evaluate = evaluator_for(self.model, config.model.evaluator)
        self.awaited: Awaited | None = None
        # a withdrawal that was found ahead is not applied again in its own place
        self._withdrawn: dict[str, None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "models")

    def apply(self, announced: Announced) -> list[Record]:
        """Apply a control record; a new model is awaited until it is decided about."""
        control, message = announced.control, announced.message
        if control.withdraw is not None:
            return self._apply_withdrawal(control.withdraw, message)
        if control.model is None:
            return []
        if control.model.version == self.version:
            # nobody could tell the explanations of the two apart
            return _refused(Awaited(control.model, message), "the one of now has that name")
        self.awaited = Awaited(control.model, message)
        return []

    def _apply_withdrawal(self, version: str, message: Message) -> list[Record]:
        if version == self.version:
            reason = f"model {version} is in use and stays: announce another model instead"
        elif version in self._withdrawn:
            del self._withdrawn[version]
            return []
        else:
            reason = f"no announcement of model {version} waits: nothing is withdrawn"
        self._withdrawn.pop(version, None)
        return [message.dead_letter(reason)]

    def find(self) -> Found:
        """Load the awaited model, which changes no state; may be called from any thread.

        Raises
        ------
        NotYetError
            If it is not there; the message says what to do.
        """
        model = self._waiting.model
        try:
            if self.models is None:
                raise NotYetError("there is no folder of models")
            return Found(self.models.get(model.sha256))
        except ValueError as error:
            return Found(None, error)
        except NotYetError as error:
            reason = f"model {model.version} was announced, but {error}. Put it there"
            raise NotYetError(reason) from error

    def is_withdrawn_by(self, message: Message) -> bool:
        """Return whether a message behind the announcement withdraws the awaited model.

        One before the announcement in ``control`` does not, although it is behind it here if the
        join role passed it on twice. May be called from any thread.
        """
        awaited = self._waiting
        topic, partition, offset = message.origin
        if topic != self._topic:
            return False
        announced = awaited.message.origin
        if announced[:2] == (topic, partition) and offset <= announced[2]:
            return False
        try:
            return decoded_control(message).withdraw == awaited.model.version
        except BadRecordError:
            return False

    def take_over(self, found: Found) -> list[Record]:
        """Replace the model by what :meth:`find` returned; return its notice.

        A model that cannot take over becomes a dead letter, and the old one stays.
        """
        from fluxplain.evaluate import evaluator_for  # noqa: PLC0415  loads River
        from fluxplain.models.model_checks import taking_over  # noqa: PLC0415  as above

        awaited, self.awaited = self._waiting, None
        before, version = self.version, awaited.model.version
        try:
            if found.error is not None:
                raise found.error
            model = taking_over(found.model, label=self._label, learns=self._settings.learn)
            self.evaluate = evaluator_for(model, self._settings.evaluator)
        except MemoryError:
            raise
        except Exception as error:  # whatever the model's own code raises
            return _refused(awaited, str(error))
        self.model, self.version = model, version
        after = "" if before is None else f" from {before}"
        return [self._notice(awaited.message, f"model {version} takes over{after}")]

    def withdraw(self) -> list[Record]:
        """Keep the old model; return the notice of it."""
        awaited, self.awaited = self._waiting, None
        version, stays = awaited.model.version, self.version or "the model before"
        self._withdrawn[version] = None
        for oldest in [*self._withdrawn][:-MOST_WITHDRAWN]:
            del self._withdrawn[oldest]
        detail = f"model {version} was withdrawn before it took over: {stays} stays"
        return [self._notice(awaited.message, detail)]

    @property
    def _waiting(self) -> Awaited:
        if self.awaited is None:
            raise RuntimeError("no model is awaited")
        return self.awaited

    def _notice(self, message: Message, detail: str) -> Change:
        seq = message.offset
        notice = Change.notice(kind="model", stream=self._stream, seq=seq, detail=detail)
        return replace(notice, model_version=self.version)


def _refused(awaited: Awaited, reason: str) -> list[Record]:
    model, message = awaited
    return [message.dead_letter(f"model {model.version} cannot take over: {reason}")]


@runtime_checkable
class Exchanges(Protocol):
    """A stage whose model may be replaced."""

    exchange: Exchange

    def conclude(self, found: Found | None) -> Sequence[Record]:
        """Take over the awaited model, or withdraw it (None); return what is published."""
        ...


def settled(stage: Exchanges, ahead: Iterable[Message] = ()) -> Sequence[Record]:
    """Decide about the awaited model of a stage, if there is one, and carry that out.

    The model is taken if it is there, else it must be withdrawn by a message of ``ahead``, which
    follow those that the stage was given.

    Raises
    ------
    NotYetError
        If the model is neither there nor withdrawn.
    """
    awaited = stage.exchange.awaited
    if awaited is None:
        return []
    try:
        found = stage.exchange.find()
    except NotYetError as error:
        if any(map(stage.exchange.is_withdrawn_by, ahead)):
            return stage.conclude(None)
        raise NotYetError(f"{error}{or_withdraw(awaited.model.version)}") from error
    return stage.conclude(found)
