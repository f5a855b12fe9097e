"""Finds the published reasons for an output, and the observation that they are about."""

from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

from fluxplain.schemas import Prediction, Reasons, Record
from fluxplain.schemas.record import incarnation_key


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
        return record.id is not None and str(record.id) == self.id

    def __str__(self) -> str:
        return f"id {self.id!r}" if self.seq is None else f"seq {self.seq:,}"


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

    Of several with its id or seq it is the newest that has a prediction or reasons, in the newest
    incarnation.
    """
    newest: _Place | None = None
    reasons: dict[object, Reasons] = {}
    prediction: Prediction | None = None
    earlier: Reasons | None = None
    for record in records:
        if not _is_about(record, wanted):
            continue
        place = _place(record)
        if newest is None or place > newest:
            earlier = next(iter(reasons.values()), earlier)
            newest, reasons, prediction = place, {}, None
        if isinstance(record, Prediction):
            prediction = record if place == newest else prediction
        elif place == newest:
            reasons[record.label] = record
        elif earlier is None or place > _place(earlier):
            earlier = record
    return Found(list(reasons.values()), prediction, earlier)


_Place = tuple[tuple[int, ...], str, int]


def _place(record: Reasons | Prediction) -> _Place:
    return incarnation_key(record.incarnation), record.stream, record.seq


def _is_about(record: Record, wanted: Wanted) -> TypeGuard[Reasons | Prediction]:
    """Return whether a record is about an observation, and was made when that arrived."""
    if isinstance(record, Prediction) and record.observation is not None:  # its label arrived
        return False
    return isinstance(record, Reasons | Prediction) and wanted.covers(record)
