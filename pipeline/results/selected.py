"""The selected results of one stream, for figures and reports."""

from collections.abc import Iterable

from fluxplain.errors import UserError
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.published import Published
from fluxplain.results.selection import Alphas, Inventory, Selection, seq_of
from fluxplain.results.store import Store
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas import Change, Explanation, Prediction, Record
from fluxplain.schemas.change import Curve

EVERYTHING = Selection()

MAX_LISTED = 20
"""Most names of each kind in the error that nothing is selected."""


class NothingToPlotError(UserError, ValueError):
    """No record to plot is selected. The message lists the present ones."""


class SelectedResults:
    """Accumulates the selected results, each once."""

    def __init__(
        self,
        selection: Selection = EVERYTHING,
        contexts: Iterable[ChangeContext] = (),
        *,
        alphas: Alphas | None = None,
    ) -> None:
        self.contexts = list(contexts)
        self._selection = selection
        self._alphas = alphas or Alphas()
        self._store = Store()
        self._inventory = Inventory("stream", "feature", "alpha")

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        selection: Selection = EVERYTHING,
        contexts: Iterable[ChangeContext] = (),
    ) -> "SelectedResults":
        """Return results from records in any order."""
        results = cls(selection, contexts)
        known = [r for r in records if isinstance(r, Prediction | Explanation | Change)]
        results.take(Published(record) for record in sorted(known, key=seq_of))
        return results

    def take(self, published: Iterable[Published]) -> None:
        """Add records; those of different partitions may be in any order."""
        for record, partition in published:
            self.add(record, partition)

    def add(self, record: Record, partition: int) -> None:
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
        return view

    @property
    def curves(self) -> dict[str, list[Curve]]:
        """Feature or pair → its curves over time; the last is the newest."""
        view = self._store.streams[self.stream].at()
        found = {f: h.curves for (f, a), h in view.results.curves.items() if a == view.alpha}
        return {feature: curves for feature, curves in found.items() if curves}

    def ice(self, feature: str) -> list[Curve]:
        """Return the newest ICE curves of a feature."""
        view = self.view
        history = view.results.curves.get((feature, view.alpha or 0.0))
        return [] if history is None else history.ice_curves

    def _nothing(self) -> str:
        if self._inventory.seqs is None:
            return "there are no explanations to plot"
        listed = self._inventory.names(MAX_LISTED).items()
        present = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in listed)
        present += "; seq: {} to {}".format(*self._inventory.seqs)
        return f"there are no such explanations to plot. Available: {present}"
