"""The model in use, and the announced model that may replace it.

Whether an announced model is there depends on the machine, so a stage does not decide that. It
stops at the announcement; its caller looks for the model, decides for all shards and all later
starts, and then lets the stage carry that out.
"""

import shlex
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.evaluate import Evaluator
from fluxplain.schemas import BadRecordError, Change, Control, Record
from fluxplain.schemas.control import NewModel
from fluxplain.stages.intake.sample import ControlMessage
from fluxplain.stages.intake.validation import decoded_control
from fluxplain.stages.metering import Meter
from fluxplain.stages.stage import Message, state_without

MOST_WITHDRAWN = 100
"""Largest number of withdrawn versions remembered until their withdrawal itself is read."""


class FoundModel(NamedTuple):
    """The model in an announced file, or why it can never be used."""

    model: Any
    error: ValueError | None = None


class ModelStore(Protocol):
    """The folder of announced models."""

    def get(self, sha256: str) -> Any:
        """Return a model; raise ``NotYetError`` if missing, ``ValueError`` if never usable."""
        ...


class AwaitedModel(NamedTuple):
    """An announced model that has not taken over, and the message that announced it."""

    model: NewModel
    message: Message


class ActiveModel:
    """The model in use, with its version and evaluator. Control records replace it.

    ``awaited`` is the announced model that the next step waits for, if any; ``models`` the injected
    folder of announced models.
    """

    models: ModelStore | None = None

    def __init__(self, config: Config, stream: str) -> None:
        from fluxplain.evaluate import evaluator_for  # noqa: PLC0415  loads River

        self.model = config.make_model()
        self.version = config.model.version
        self._settings = config.model
        self._label = config.label.type
        self._stream = stream
        self._topic = config.topic(Control.TOPIC)
        self.evaluate = evaluator_for(self.model, config.model.evaluator)
        self.awaited: AwaitedModel | None = None
        # a withdrawal that was found ahead is not applied again when it is read
        self._withdrawn: dict[str, None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "models")

    def forget_copies(self) -> None:
        """Forget what the evaluator has copied of the model, which was left in the middle."""
        from fluxplain.evaluate import choose  # noqa: PLC0415  loads River

        self.evaluate = choose(self.model, self._settings.evaluator).evaluator

    def copied(self) -> Evaluator:
        """Return an evaluator of a copy of the model as it is now."""
        from fluxplain.evaluate import evaluator_for  # noqa: PLC0415  loads River

        return evaluator_for(deepcopy(self.model), self._settings.evaluator)

    def apply(self, accepted: ControlMessage) -> list[Record]:
        """Apply a control record and return dead letters; a new model becomes the awaited one."""
        control, message = accepted.control, accepted.message
        if control.withdraw is not None:
            return self._apply_withdrawal(control.withdraw, message)
        if control.model is None:
            return []
        if control.model.version == self.version:
            # their explanations could not be distinguished
            return _refused(AwaitedModel(control.model, message), "the model in use has that name")
        self.awaited = AwaitedModel(control.model, message)
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

    def find(self) -> FoundModel:
        """Load the awaited model, or raise ``NotYetError``; safe to call from any thread."""
        model = self._waiting.model
        try:
            if self.models is None:
                raise NotYetError("there is no folder of models")
            return FoundModel(self.models.get(model.sha256))
        except ValueError as error:
            return FoundModel(None, error)
        except NotYetError as error:
            reason = f"model {model.version} was announced, but {error}. Put it there"
            raise NotYetError(reason) from error

    def is_withdrawn_by(self, message: Message) -> bool:
        """Return whether a message withdraws the awaited model; safe to call from any thread.

        A withdrawal that precedes the announcement in ``control`` does not count, even if the join
        role passed it on again afterwards.
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

    def take_over(self, found: FoundModel) -> list[Record]:
        """Replace the model by the found one; return its notice.

        If it cannot take over, the old model stays and the announcement becomes a dead letter.
        """
        from fluxplain.evaluate import evaluator_for  # noqa: PLC0415  loads River
        from fluxplain.models.model_checks import taking_over  # noqa: PLC0415  as above

        awaited, self.awaited = self._waiting, None
        before, version = self.version, awaited.model.version
        try:
            if found.error is not None:
                raise found.error
            given = self._settings.as_configured(found.model)
            model = taking_over(given, label=self._label, learns=self._settings.learn)
            self.evaluate = evaluator_for(model, self._settings.evaluator)
        except MemoryError:
            raise
        except Exception as error:  # the model's own code may raise anything
            return _refused(awaited, str(error))
        self.model, self.version = model, version
        after = "" if before is None else f" from {before}"
        return [self._notice(awaited.message, f"model {version} takes over{after}")]

    def withdraw(self) -> list[Record]:
        """Keep the old model; return the notice."""
        awaited, self.awaited = self._waiting, None
        version, stays = awaited.model.version, self.version or "the model before"
        self._withdrawn[version] = None
        for oldest in [*self._withdrawn][:-MOST_WITHDRAWN]:
            del self._withdrawn[oldest]
        detail = f"model {version} was withdrawn before it took over: {stays} stays"
        return [self._notice(awaited.message, detail)]

    @property
    def _waiting(self) -> AwaitedModel:
        if self.awaited is None:
            raise RuntimeError("no model is awaited")
        return self.awaited

    def _notice(self, message: Message, detail: str) -> Change:
        seq = message.offset
        notice = Change.notice(kind="model", stream=self._stream, seq=seq, detail=detail)
        return replace(notice, model_version=self.version)


def _refused(awaited: AwaitedModel, reason: str) -> list[Record]:
    model, message = awaited
    return [message.dead_letter(f"model {model.version} cannot take over: {reason}")]


def or_withdraw(version: str) -> str:
    """Return the end of an error about a missing model: the command that withdraws it."""
    return f", or withdraw it: `fluxplain model withdraw {shlex.quote(version)}`"


@runtime_checkable
class HasActiveModel(Protocol):
    """The interface of the model stage, for callers that must not load River.

    ``meter`` is injected; the stage explains one of ``every`` observations.
    """

    active: ActiveModel
    meter: Meter | None

    @property
    def every(self) -> int: ...  # noqa: D102

    def conclude(self, found: FoundModel | None) -> Sequence[Record]:
        """Take over the awaited model, or withdraw it (None); return the records to publish."""
        ...


def settle_model(stage: HasActiveModel, ahead: Iterable[Message] = ()) -> Sequence[Record]:
    """Take over the awaited model of a stage, or withdraw it; does nothing if none is awaited.

    A missing model must be withdrawn by one of the messages ``ahead`` of the stage; otherwise
    ``NotYetError`` is raised.
    """
    awaited = stage.active.awaited
    if awaited is None:
        return []
    try:
        found = stage.active.find()
    except NotYetError as error:
        if any(map(stage.active.is_withdrawn_by, ahead)):
            return stage.conclude(None)
        raise NotYetError(f"{error}{or_withdraw(awaited.model.version)}") from error
    return stage.conclude(found)
