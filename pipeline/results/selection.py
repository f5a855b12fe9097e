"""Selections of published records, and inventories of present ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fluxplain.config import Config
from fluxplain.schemas import Record

MAX_NAMES = 1_000
"""Most names of each kind that an inventory remembers."""


@dataclass(frozen=True, slots=True)
class Alphas:
    """Smoothing rates to show, the preferred one first; if empty, in order of appearance."""

    common: Sequence[float] = ()
    own: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def configured(cls, config: Config) -> "Alphas":
        """Return the rates of each stream's settings."""
        own = {name: each.explain.alphas for name, each in config.own_streams.items()}
        return cls(config.explain.alphas, own)

    @classmethod
    def only(cls, alpha: float | None) -> "Alphas":
        """Return one rate for all streams; None stands for the one that appears first."""
        return cls(() if alpha is None else (alpha,))

    def of(self, stream: str | None) -> Sequence[float]:
        """Return the rates of a stream."""
        return self.common if stream is None else self.own.get(stream, self.common)

    def known(self, stream: str | None, present: Iterable[float]) -> list[float]:
        """Return the present ones of a stream's rates; if none is, all present rates."""
        rates = list(present)
        return [alpha for alpha in self.of(stream) if alpha in rates] or rates


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects records; empty sets stand for all names.

    Attributes
    ----------
    first_seq, last_seq
        Range of observations, both included.
    """

    streams: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    first_seq: int | None = None
    last_seq: int | None = None

    def fits(self, record: Record, *, of_all_features: bool = False) -> bool:
        """Return whether a record is selected.

        With ``of_all_features``, records without a feature (predictions, notices and changes of the
        loss) fit any selection of features and methods.
        """
        wanted = {"stream": self.streams, "feature": self.features, "method": self.methods}
        if of_all_features and getattr(record, "feature", None) is None:
            wanted = {"stream": self.streams}
        seq = seq_of(record)
        return (
            (self.first_seq is None or seq >= self.first_seq)
            and (self.last_seq is None or seq <= self.last_seq)
            and all(not some or getattr(record, name) in some for name, some in wanted.items())
        )


class Inventory:
    """Names and seqs of present records, to list them if no record is selected."""

    def __init__(self, *fields: str) -> None:
        self._names: dict[str, dict[str, None]] = {name: {} for name in fields}
        self.seqs: tuple[int, int] | None = None

    def add(self, record: Record) -> None:
        """Take a record's names and seq into account."""
        seq = seq_of(record)
        first, last = self.seqs or (seq, seq)
        self.seqs = min(first, seq), max(last, seq)
        for field_name, known in self._names.items():
            value = getattr(record, field_name, None)
            if value is not None and len(known) < MAX_NAMES:
                known[f"{value:g}" if isinstance(value, float) else value] = None

    def names(self, most: int) -> dict[str, list[str]]:
        """Return field → its first values, sorted, without fields that have none."""
        return {name: sorted(known)[:most] for name, known in self._names.items() if known}


def seq_of(record: Record) -> int:
    """Return the seq, which all published records have."""
    seq: int = getattr(record, "seq")  # noqa: B009
    return seq
