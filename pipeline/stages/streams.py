"""Streams with settings of their own, in an input whose partitions hold several streams."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fluxplain.config import Config
from fluxplain.schemas import Evaluation, Explanation, Record
from fluxplain.stages.base import Message, Stage
from fluxplain.stages.incarnations import FollowsLives, IsLife
from fluxplain.stages.limits import check_key


class KeyedStage(Stage, Protocol):
    """A stage that keeps the streams of its input apart."""

    is_life: IsLife | None

    @property
    def INPUT(self) -> type[Evaluation] | type[Explanation]:  # noqa: N802  a constant of the class
        """What it reads."""
        ...

    def accept(self, message: Message, record: Any) -> Any:
        """Return what :meth:`step` takes, of the record in a message.

        Raises
        ------
        BadRecordError
            If the record cannot be used.
        """
        ...


S = TypeVar("S", bound=KeyedStage)


def by_stream(config: Config, make: Callable[[Config], S]) -> "S | ByStream":
    """Return the stage of all streams; if some have settings of their own, one that knows which."""
    own = {name: make(each) for name, each in config.own_streams.items()}
    return ByStream(make(config), own) if own else make(config)


class ByStream(FollowsLives):
    """Passes each record to the stage of its stream.

    Parameters
    ----------
    common
        The stage of all streams that have none of their own.
    own
        Stream → its stage.
    """

    def __init__(self, common: KeyedStage, own: Mapping[str, KeyedStage]) -> None:
        self._common = common
        self._own = own

    @property
    def is_life(self) -> IsLife | None:
        """That of each stage."""
        return self._common.is_life

    @is_life.setter
    def is_life(self, is_life: IsLife | None) -> None:
        for stage in (self._common, *self._own.values()):
            stage.is_life = is_life

    def decode(self, message: Message) -> tuple[KeyedStage, Any]:
        """Return the stage of the record's stream, and what it takes.

        Raises
        ------
        BadRecordError
            If the message cannot be used.
        """
        check_key(message)
        record = self._common.INPUT.of(message.fields())
        stage = self.of(record.stream)
        return stage, stage.accept(message, record)

    def of(self, stream: str) -> KeyedStage:
        """Return the stage of a stream."""
        return self._own.get(stream, self._common)

    def step(self, record: tuple[KeyedStage, Any]) -> Sequence[Record]:
        """Return what that stage publishes."""
        stage, accepted = record
        return stage.step(accepted)
