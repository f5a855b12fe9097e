"""Lives of a state: from its start until it is lost, or its settings are replaced.

A state rebuilt from the beginning of its log equals the lost one and continues its life. A cold
start, after that beginning, gives another state: its records carry another incarnation, so that
they are not taken for those published before.
"""

from dataclasses import dataclass, replace

from fluxplain.config.replica import Role
from fluxplain.schemas import Change, Record
from fluxplain.schemas.change import change_id


@dataclass(frozen=True, slots=True)
class Life:
    """The life of a state: the registered numbers of its settings and of its last beginning.

    ``cold_start`` is None if the state began with its log. If it resumed with other versions, it is
    the number of these.
    """

    settings: int = 1
    cold_start: int | None = None

    @property
    def incarnation(self) -> str:
        """The incarnation of the model's records in this life."""
        return str(self.cold_start or self.settings)

    def of(self, record: Record, role: Role) -> Record:
        """Return a stage's record with the incarnation of this life.

        The model's life decides the incarnation; explainer and drift roles keep their input's, and
        append their own cold start, or the number of other versions unless their input has it.
        """
        incarnation = getattr(record, "incarnation", None)
        if incarnation is None:
            return record
        if role in {"join", "model"}:
            incarnation = self.incarnation
        elif self.cold_start is not None and str(self.cold_start) not in incarnation.split("/"):
            incarnation = f"{incarnation}/{self.cold_start}"
        if incarnation == record.incarnation:  # type: ignore[attr-defined]
            return record
        if isinstance(record, Change):
            place = record.stream, record.kind, record.feature, record.method, record.seq
            id_ = change_id(*place, incarnation, record.signal)
            return replace(record, id=id_, incarnation=incarnation)
        return replace(record, incarnation=incarnation)  # type: ignore[call-arg]


FIRST = Life()
"""The life of a new pipeline's states."""
