"""Finds the published reasons for an output, and the observation that they are about."""

from collections.abc import Iterable
from typing import NamedTuple

from fluxplain.schemas import Prediction, Reasons, Record, is_newer


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
    """The newest reasons for an observation, one for each label, and its first prediction."""

    reasons: list[Reasons]
    prediction: Prediction | None


def find_reasons(records: Iterable[Record], wanted: Wanted) -> Found:
    """Find what is published about an observation; of several with its id, about the newest."""
    reasons: dict[object, Reasons] = {}
    prediction: Prediction | None = None
    for record in records:
        if isinstance(record, Reasons) and wanted.covers(record):
            first = next(iter(reasons.values()), None)
            if first is not None and _replaces(record, first):
                reasons = {}
            if first is None or not _replaces(first, record):
                reasons[record.label] = record
        elif (
            isinstance(record, Prediction)
            and record.observation is None  # made when it arrived, not when its label did
            and wanted.covers(record)
            and (prediction is None or not _replaces(prediction, record))
        ):
            prediction = record
    return Found(list(reasons.values()), prediction)


def _replaces(record: Reasons | Prediction, other: Reasons | Prediction) -> bool:
    """Return whether a record is of a newer incarnation, or of a later observation."""
    if record.incarnation != other.incarnation:
        return is_newer(record.incarnation, than=other.incarnation)
    return (record.stream, record.seq) > (other.stream, other.seq)
