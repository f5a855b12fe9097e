"""Finds the published reasons for an output, and the observation that they are about."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, TypeGuard

from fluxplain.config import ConfigError
from fluxplain.schemas import Prediction, Reasons, Record
from fluxplain.schemas.asked_ids import AskedIds
from fluxplain.schemas.record import Label, Number, Timestamp, incarnation_key


class Wanted(NamedTuple):
    """An observation that is asked about: by its ``id``, or by its ``seq`` in a stream."""

    id: str | None = None
    stream: str | None = None
    seq: int | None = None

    def covers(self, record: Reasons | Prediction) -> bool:
        """Return whether a record is about it."""
        if self.stream is not None and record.stream != self.stream:
            return False
        if self.seq is not None:
            return record.seq == self.seq
        return self.id is not None and record.id in _asked(self.id)

    def __str__(self) -> str:
        return f"id {self.id!r}" if self.seq is None else f"seq {self.seq:,}"


@lru_cache(maxsize=1)
def _asked(id_: str) -> AskedIds:
    return AskedIds([id_])


class Found(NamedTuple):
    """The reasons for an observation, one for each label, and its first prediction.

    ``earlier`` are reasons of the latest earlier observation that could have been meant: one with
    the same id, or one of an earlier incarnation.
    """

    reasons: list[Reasons]
    prediction: Prediction | None
    earlier: Reasons | None = None


def find_reasons(records: Iterable[Record], wanted: Wanted) -> Found:
    """Find what is published about an observation.

    Of several with its id or seq it is the newest that has a prediction or reasons: within a
    stream, that with the largest seq of the newest incarnation; of several streams, that with the
    latest ``ts``. Raises ``ConfigError`` if the streams have no times that can be compared.
    """
    streams: dict[str, _Newest] = {}
    for record in records:
        if _is_about(record, wanted):
            streams.setdefault(record.stream, _Newest(record)).take(record)
    if not streams:
        return Found([], None)
    newest = _latest([*streams.values()])
    if newest is None:
        raise _ambiguous(streams, wanted)
    earlier = newest.earlier
    if earlier is None:
        other = _latest([each for each in streams.values() if each is not newest and each.reasons])
        earlier = None if other is None else next(iter(other.reasons.values()))
    return Found([*newest.reasons.values()], newest.prediction, earlier)


class _Newest:
    """The newest observation of one stream: its reasons by label, and its prediction."""

    def __init__(self, record: Reasons | Prediction) -> None:
        self.place = _place(record)
        self.ts = record.ts
        self.reasons: dict[Label | None, Reasons] = {}
        self.prediction: Prediction | None = None
        self.earlier: Reasons | None = None

    def take(self, record: Reasons | Prediction) -> None:
        place = _place(record)
        if place > self.place:
            self.earlier = next(iter(self.reasons.values()), self.earlier)
            self.place, self.ts, self.reasons, self.prediction = place, record.ts, {}, None
        if isinstance(record, Prediction):
            self.prediction = record if place == self.place else self.prediction
        elif place == self.place:
            self.reasons[record.label] = record
        elif self.earlier is None or place > _place(self.earlier):
            self.earlier = record


def _place(record: Reasons | Prediction) -> tuple[tuple[int, ...], int]:
    return incarnation_key(record.incarnation), record.seq


def _latest(found: Sequence[_Newest]) -> _Newest | None:
    """Return the observation that is later than all others; None if that cannot be told."""
    for one in found:
        if all(other is one or _is_later(one.ts, other.ts) for other in found):
            return one
    return None


def _is_later(one: Timestamp | None, other: Timestamp | None) -> bool:
    """Return whether a time is surely later than another one: numbers, or texts in ISO 8601."""
    if isinstance(one, str) and isinstance(other, str):
        try:
            return datetime.fromisoformat(one) > datetime.fromisoformat(other)
        except (ValueError, TypeError):  # only one of them has a time zone
            return False
    return isinstance(one, Number) and isinstance(other, Number) and one > other


def _ambiguous(streams: Mapping[str, _Newest], wanted: Wanted) -> ConfigError:
    names = sorted(streams, key=lambda name: (len(name), name))
    return ConfigError(
        f"{wanted} is in several streams: {', '.join(names)}; their ts do not tell which is the "
        "newest, so name one with --stream"
    )


def _is_about(record: Record, wanted: Wanted) -> TypeGuard[Reasons | Prediction]:
    """Return whether a record is about an observation, and was made when that arrived."""
    if isinstance(record, Prediction) and record.observation is not None:  # its label arrived
        return False
    return isinstance(record, Reasons | Prediction) and wanted.covers(record)
