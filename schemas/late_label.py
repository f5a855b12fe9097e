"""Records of the topic ``labels``: labels that arrive after their observations."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fluxplain.schemas.observation import Id, optional
from fluxplain.schemas.record import BadRecordError, Record, Target, Timestamp


@dataclass(frozen=True, slots=True)
class LabelValue:
    """An encoded late label, for the topic ``labels`` if there is one."""

    value: bytes


@dataclass(frozen=True, slots=True)
class LateLabel(Record):
    """The label of an observation that was sent without one.

    It may also arrive in ``features``, after its observation: a record with ``id`` and ``y`` but
    without ``x`` that does not clearly hold the features elsewhere.

    Attributes
    ----------
    id
        The observation's id.
    y
        The label.
    ts
        When the label became known, in the user's format; passed through.
    """

    TOPIC: ClassVar[str] = "labels"

    id: Id
    y: Target
    ts: Timestamp | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields; others are ignored.

        Examples
        --------
        >>> LateLabel.decode(b'{"id": "tx-1", "y": true}')
        LateLabel(id='tx-1', y=True, ts=None)
        """
        id_, y = optional(fields, "id", Id), optional(fields, "y", Target)
        if id_ is None:
            raise BadRecordError("no id: a label needs that of its observation")
        if y is None:
            raise BadRecordError("no y: a label that comes later needs one")
        return cls(id_, y, optional(fields, "ts", Timestamp))
