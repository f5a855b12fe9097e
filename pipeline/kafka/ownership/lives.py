"""Lives of a state: from its beginning until it is lost, or its settings are replaced.

A state that is built from the beginning of its log is the same as the one before it, and continues
that one's life. A state that starts cold, behind that beginning, is another one: its records must
not be taken for those published before, so they carry another incarnation.
"""

from dataclasses import dataclass, replace

from fluxplain.config.replica import Role
from fluxplain.schemas import Change, Record
from fluxplain.schemas.change import change_id


@dataclass(frozen=True, slots=True)
class Life:
    """The life of one state: the number of its settings in the register, and of its cold start.

    ``cold_start`` is None if the state began with its log.
    """

    settings: int = 1
    cold_start: int | None = None

    def of(self, record: Record, role: Role) -> Record:
        """Return what a stage published as a record of this life.

        The model's life decides the incarnation; explainer and drift roles keep that of what they
        read, and add their own cold start.
        """
        incarnation = getattr(record, "incarnation", None)
        if incarnation is None:
            return record
        if role in {"join", "model"}:
            incarnation = str(self.cold_start or self.settings)
        elif self.cold_start is not None:
            incarnation = f"{incarnation}/{self.cold_start}"
        if incarnation == record.incarnation:  # type: ignore[attr-defined]
            return record
        if isinstance(record, Change):
            place = record.stream, record.kind, record.feature, record.method, record.seq
            return replace(record, id=change_id(*place, incarnation), incarnation=incarnation)
        return replace(record, incarnation=incarnation)  # type: ignore[call-arg]


FIRST = Life()
"""That of a new pipeline."""
