"""The newest reasons of one stream, in bounded memory."""

from dataclasses import dataclass, field

from fluxplain.results.pdp_history import compact
from fluxplain.schemas import Reasons
from fluxplain.schemas.record import Label, incarnation_key

MAX_OBSERVATIONS = 200
"""Newest observations of a stream whose reasons are kept."""


@dataclass(slots=True)
class _Observation:
    """The reasons for one output: label → record as JSON.

    ``order`` sorts by incarnation, then by seq.
    """

    order: tuple[tuple[int, ...], int]
    texts: dict[Label | None, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.texts.values()))


class RecentReasons:
    """The reasons for the newest outputs of a stream, as JSON.

    The newest are those of the newest incarnation; within one, those with the largest seq.
    ``version`` is the store's version at which the latest were added; 0 if there are none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.size = 0
        self._observations: dict[int, _Observation] = {}

    def add(self, reasons: Reasons, *, version: int, most: int) -> bool:
        """Add reasons within ``most`` bytes; return whether they are kept.

        Of the same observation, those of an older incarnation are replaced, and so are repeated
        ones.
        """
        text, seq = compact(reasons.encode()), reasons.seq
        order = incarnation_key(reasons.incarnation), seq
        known = self._observations.get(seq)
        if len(text) > most or (known is not None and known.order > order):
            return False
        if known is None or known.order != order:
            self._drop(seq)
            known = self._observations[seq] = _Observation(order)
        self.size += len(text) - len(known.texts.get(reasons.label, b""))
        known.texts[reasons.label] = text
        self.version = version
        self.trim(most)
        return seq in self._observations

    def trim(self, most: int) -> None:
        """Drop the oldest observations until ``most`` bytes are enough."""
        while len(self._observations) > MAX_OBSERVATIONS or self.size > most:
            self._drop(min(self._observations, key=self._order))

    def of(self, seq: int) -> list[bytes]:
        """Return the reasons for an observation as JSON, one for each label."""
        found = self._observations.get(seq)
        return [] if found is None else list(found.texts.values())

    def latest_first(self) -> list[list[bytes]]:
        """Return the reasons for each observation, the newest observation first."""
        return [self.of(seq) for seq in sorted(self._observations, key=self._order, reverse=True)]

    def _order(self, seq: int) -> tuple[tuple[int, ...], int]:
        return self._observations[seq].order

    def _drop(self, seq: int) -> None:
        dropped = self._observations.pop(seq, None)
        if dropped is not None:
            self.size -= dropped.size
