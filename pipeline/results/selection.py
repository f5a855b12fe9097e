"""Selects published records, and lists the present ones if none is selected."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fluxplain.errors import UserError
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.published import Published
from fluxplain.results.store import Store
from fluxplain.results.stream_results import Alphas, StreamView
from fluxplain.schemas import Change, Explanation, Prediction, Record

MAX_NAMES = 1_000
"""Most names of each kind that an inventory remembers."""

MAX_LISTED = 20
"""Most names of each kind in the error that nothing is selected."""


class NothingToPlotError(UserError, ValueError):
    """No record to plot is selected. The message lists the present ones."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects records; empty sets stand for all names, and both ends of the range are included."""

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


EVERYTHING = Selection()


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


class SelectedResults:
    """Accumulates the selected results, each once."""

    def __init__(
        self,
        published: Iterable[Published],
        selection: Selection = EVERYTHING,
        contexts: Iterable[ChangeContext] = (),
        *,
        alphas: Alphas | None = None,
    ) -> None:
        """Take records; those of different partitions may be in any order."""
        self.contexts = list(contexts)
        self._selection = selection
        self._alphas = alphas or Alphas()
        self._store = Store()
        self._inventory = Inventory("stream", "feature", "alpha")
        for record, partition in published:
            self._add(record, partition)

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        selection: Selection = EVERYTHING,
        contexts: Iterable[ChangeContext] = (),
    ) -> "SelectedResults":
        """Return results from records in any order."""
        known = [r for r in records if isinstance(r, Prediction | Explanation | Change)]
        return cls(map(Published, sorted(known, key=seq_of)), selection, contexts)

    def _add(self, record: Record, partition: int) -> None:
        """Add a record, unless it is a duplicate or not selected."""
        if not isinstance(record, Prediction | Explanation | Change):
            return
        if isinstance(record, Explanation):
            self._inventory.add(record)
            if not set(self._alphas.of(record.stream)[:1]) <= {record.alpha}:
                return
        is_wanted = self._selection.fits(record, of_all_features=True)
        if is_wanted and self._store.add(record, partition) and not isinstance(record, Change):
            for context in self.contexts:
                context.add(record)

    @property
    def stream(self) -> str:
        """The selected stream; without a selection, one with new data."""
        if self._store.current is None:
            raise NothingToPlotError(self._nothing())
        return self._store.current

    @property
    def view(self) -> StreamView:
        """The stream's results at the preferred smoothing rate."""
        view = self._store.streams[self.stream].at()
        if not view.series:
            raise NothingToPlotError(self._nothing())
        return replace(view, known=self._inventory.names(MAX_NAMES).get("feature", ()))

    def _nothing(self) -> str:
        if self._inventory.seqs is None:
            return "there are no explanations to plot"
        listed = self._inventory.names(MAX_LISTED).items()
        present = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in listed)
        present += "; seq: {} to {}".format(*self._inventory.seqs)
        return f"there are no such explanations to plot. Available: {present}"


def seq_of(record: Record) -> int:
    """Return the seq, which all published records have."""
    seq: int = getattr(record, "seq")  # noqa: B009
    return seq
