"""Overview of all streams of a store, one row each. The caller holds the store's lock."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from fluxplain.results.selection import Alphas
from fluxplain.results.series import Series
from fluxplain.results.store import Store
from fluxplain.results.stream_results import StreamResults
from fluxplain.schemas import Change
from fluxplain.schemas.methods import Method

TOP = 3
"""Most important features in a row."""


class Row(NamedTuple):
    """One stream: its results, and values computed from them, None with too little data.

    ``top`` has the most important features by ``method`` and ``alpha``.
    """

    stream: str
    results: StreamResults
    rate: float
    loss: float | None
    accuracy: float | None
    method: Method | None
    alpha: float | None
    top: list[tuple[str, Series]]

    @property
    def change(self) -> Change | None:
        """The latest change."""
        return self.results.changes[-1][1] if self.results.changes else None


def choose(
    stream: StreamResults, alphas: Iterable[float], method: Method | None, alpha: float | None
) -> tuple[Method | None, float | None]:
    """Choose method and smoothing rate to show: the given ones if present, else the first."""
    chosen = method if method in stream.methods else next(iter(stream.methods), None)
    known = Alphas(list(alphas)).known(None, stream.alphas(chosen))
    return chosen, alpha if alpha in known else next(iter(known), None)


def overview(store: Store, alphas: Alphas, method: Method | None, now: float) -> list[Row]:
    """Return a row for each stream, the one with the latest change first."""
    rows = [_row(name, each, alphas, method, now) for name, each in store.streams.items()]
    return latest_first(rows)


def latest_first(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by their latest change, the latest first; rows without changes follow by name."""
    return sorted(rows, key=lambda row: (-row.results.changed_at, _natural(row.stream)))


def _row(
    name: str, stream: StreamResults, alphas: Alphas, wanted: Method | None, now: float
) -> Row:
    method, alpha = choose(stream, alphas.of(name), wanted, None)
    series = {} if method is None or alpha is None else stream.series[method, alpha]
    trend = stream.performance.trend(most=1)
    return Row(
        stream=name,
        results=stream,
        rate=stream.throughput.rate(now),
        loss=next(iter(trend["loss"]), None),
        accuracy=next(iter(trend["accuracy"]), None),
        method=method,
        alpha=alpha,
        top=sorted(series.items(), key=lambda each: (-each[1].newest.value, each[0]))[:TOP],
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key in which 2 comes before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]
