"""Dispatches records to a stage per stream, where streams have their own settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fluxplain.config import Config
from fluxplain.schemas import Evaluation, Explanation, Record
from fluxplain.stages.incarnations import ChecksIncarnations, IsLife
from fluxplain.stages.limits import check_key
from fluxplain.stages.stage import Message, Stage


class KeyedStage(Stage, Protocol):
    """A stage that keeps a state per stream of its input."""

    is_life: IsLife | None

    @property
    def INPUT(self) -> type[Evaluation] | type[Explanation]:  # noqa: N802  a constant of the class
        """The record type that it reads."""
        ...

    def accept(self, message: Message, record: Any) -> Any:
        """Return the input of :meth:`step` for a message's record, or raise ``BadRecordError``."""
        ...


S = TypeVar("S", bound=KeyedStage)


def by_stream(config: Config, make: Callable[[Config], S]) -> "S | ByStream":
    """Return one stage for all streams, or a dispatcher if some have their own settings."""
    own = {name: make(each) for name, each in config.own_streams.items()}
    return ByStream(make(config), own) if own else make(config)


class ByStream(ChecksIncarnations):
    """Passes each record to its stream's ``own`` stage, or else to the ``common`` one."""

    def __init__(self, common: KeyedStage, own: Mapping[str, KeyedStage]) -> None:
        self._common = common
        self._own = own

    @property
    def is_life(self) -> IsLife | None:
        """The check of all stages."""
        return self._common.is_life

    @is_life.setter
    def is_life(self, is_life: IsLife | None) -> None:
        for stage in (self._common, *self._own.values()):
            stage.is_life = is_life

    def decode(self, message: Message) -> tuple[KeyedStage, Any]:
        """Return the stage of the record's stream and its input, or raise ``BadRecordError``."""
        check_key(message)
        record = self._common.INPUT.of(message.fields())
        stage = self.of(record.stream)
        return stage, stage.accept(message, record)

    def of(self, stream: str) -> KeyedStage:
        """Return the stage of a stream."""
        return self._own.get(stream, self._common)

    def step(self, record: tuple[KeyedStage, Any]) -> Sequence[Record]:
        """Return the records that this stage publishes."""
        stage, accepted = record
        return stage.step(accepted)
