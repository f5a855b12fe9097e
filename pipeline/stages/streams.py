"""Stages that keep a state per stream, and their dispatch where streams have their own settings."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from fluxplain.config import Config
from fluxplain.schemas import (
    BadRecordError,
    Change,
    Evaluation,
    Explanation,
    Incarnation,
    Record,
)
from fluxplain.schemas.record import Timestamp, incarnation_key
from fluxplain.stages.chain import Gap
from fluxplain.stages.limits import check_key, check_origin
from fluxplain.stages.stage import Message, state_without

R = TypeVar("R", bound=Evaluation | Explanation)


class Lives(Protocol):
    """What is registered about the numbers in incarnations."""

    def is_life(self, number: int) -> bool:
        """Return whether a number is registered."""
        ...

    def continues(self, number: int, before: int, place: str) -> bool:
        """Return whether a state of a place (role and stream, or role) is that of ``before``.

        It then has other versions, and did not start cold since.
        """
        ...


class ChecksIncarnations:
    """Base of the stages that read records with incarnations.

    Attributes
    ----------
    lives
        Injected by the worker; None accepts all incarnations, and knows no upgrade.
    """

    lives: Lives | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "lives")


class KeyedStage(ChecksIncarnations, ABC, Generic[R]):
    """A stage that reads records of one kind (``INPUT``) and keeps a state per stream of them.

    ``RESUMES`` names the work that resumes after a gap in them.
    """

    INPUT: type[R]
    RESUMES: str

    def __init__(self, config: Config) -> None:
        self._source = config.topic(config.source)
        self._explained = config.explained

    def decode(self, message: Message) -> tuple[Message, R]:
        """Return the record with its message; raise ``BadRecordError`` if it cannot be used."""
        check_key(message)
        record: Any = self.INPUT.of(message.fields())
        return message, self.accept(record)

    def accept(self, record: R) -> R:
        """Return a decoded record, or raise ``BadRecordError`` if it cannot be used."""
        check_origin(self._source, self._explained, record.stream, record.feature)
        numbers = map(int, record.incarnation.split("/"))
        if self.lives is not None and not all(map(self.lives.is_life, numbers)):
            # it would end the real one
            raise BadRecordError(f"no worker has registered the incarnation {record.incarnation}")
        self.check(record)
        return record

    def continues_model(self, stream: str, incarnation: Incarnation, before: Incarnation) -> bool:
        """Return whether a newer incarnation has the model of ``before``, with other versions.

        It must have been accepted.
        """
        now, then = incarnation_key(incarnation)[0], incarnation_key(before)[0]
        return self.lives is not None and self.lives.continues(now, then, f"model {stream}")

    @abstractmethod
    def check(self, record: R) -> None:
        """Raise ``BadRecordError`` if a record cannot be used."""

    @abstractmethod
    def step(self, record: tuple[Message, R]) -> Sequence[Record]:
        """Take one record and return the records to publish."""

    def gap_notice(self, record: R, gap: Gap, seq: int, ts: Timestamp | None, lost: str) -> Change:
        """Return the notice of a gap before ``seq``; ``lost`` names what is missing."""
        before = gap.begin - 1
        missing = "its beginning" if before < 0 else f"what follows seq {before}"
        return Change.notice(
            kind="gap",
            stream=record.stream,
            seq=seq,
            previous_seq=None if before < 0 else before,
            ts=ts,
            feature=record.feature,
            method=record.method if isinstance(record, Explanation) else None,
            detail=(
                f"{lost} are lost: {missing}, up to seq {record.previous_seq}; "
                f"{self.RESUMES} at seq {seq}"
            ),
            incarnation=record.incarnation,
        )


S = TypeVar("S", bound=KeyedStage[Any])


def by_stream(config: Config, make: Callable[[Config], S]) -> "S | ByStream":
    """Return one stage for all streams, or a dispatcher if some have their own settings."""
    own = {name: make(each) for name, each in config.own_streams.items()}
    return ByStream(make(config), own) if own else make(config)


class ByStream(ChecksIncarnations):
    """Passes each record to its stream's ``own`` stage, or else to the ``common`` one."""

    def __init__(self, common: KeyedStage[Any], own: Mapping[str, KeyedStage[Any]]) -> None:
        self._common = common
        self._own = own

    @property
    def lives(self) -> Lives | None:
        """What all stages ask about incarnations."""
        return self._common.lives

    @lives.setter
    def lives(self, lives: Lives | None) -> None:
        for stage in (self._common, *self._own.values()):
            stage.lives = lives

    def decode(self, message: Message) -> tuple[Message, Any]:
        """Return the record with its message; raise ``BadRecordError`` if it cannot be used."""
        check_key(message)
        record: Evaluation | Explanation = self._common.INPUT.of(message.fields())
        return message, self.of(record.stream).accept(record)

    def of(self, stream: str) -> KeyedStage[Any]:
        """Return the stage of a stream."""
        return self._own.get(stream, self._common)

    def step(self, record: tuple[Message, Any]) -> Sequence[Record]:
        """Return the records that the stream's stage publishes."""
        return self.of(record[1].stream).step(record)
