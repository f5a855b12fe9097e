"""The results of one stream, and a view of them at one smoothing rate."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fluxplain.results.pdp_history import PdpHistory
from fluxplain.results.performance import Performance, Throughput
from fluxplain.results.selection import Alphas
from fluxplain.results.series import Estimate, Series
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.prediction import LabelCounts

Key = tuple[str, Method]
"""A feature and a method."""


@dataclass(slots=True)
class StreamResults:
    """The results of one stream.

    ``series`` is (method, alpha) → feature → importance over time; ``curves`` is (feature, alpha) →
    curves. ``changes`` holds the latest changes by seq, without curves, each with the store's
    version at which it was added. ``changed_at`` is the timestamp of the latest, in milliseconds
    since 1970.
    """

    series: dict[tuple[Method, float], dict[str, Series]] = field(default_factory=dict)
    curves: dict[tuple[str, float], PdpHistory] = field(default_factory=dict)
    performance: Performance = field(default_factory=Performance)
    throughput: Throughput = field(default_factory=Throughput)
    changes: list[tuple[int, Change]] = field(default_factory=list)
    change_count: int = 0
    changed_at: int = 0
    letters: int = 0
    records: int = 0
    labels: LabelCounts | None = None
    newest_prediction: int = -1
    newest_seq: int = -1
    last_result: int = 0

    def alphas(self, method: Method | None = None) -> list[float]:
        """Return the smoothing rates of a method, or of all, in order of appearance."""
        return list(dict.fromkeys(a for m, a in self.series if method in {None, m}))

    @property
    def methods(self) -> list[Method]:
        """The methods with explanations."""
        return [method for method in METHODS if any(method == m for m, _ in self.series)]

    def at(self, alphas: Sequence[float] = ()) -> "StreamView":
        """Return the results at the preferred smoothing rate."""
        return StreamView(self, next(iter(Alphas(alphas).known(None, self.alphas())), None))


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's results at one smoothing rate, for terminal and figures."""

    results: StreamResults
    alpha: float | None

    @property
    def methods(self) -> list[Method]:
        """The methods with explanations."""
        present = {method for _, method in self.series}
        return [method for method in METHODS if method in present]

    @property
    def series(self) -> dict[Key, Series]:
        """(feature, method) → importance over time."""
        return {
            (feature, method): series
            for (method, alpha), features in self.results.series.items()
            if alpha == self.alpha
            for feature, series in features.items()
        }

    @property
    def features(self) -> list[str]:
        """The explained features, groups and pairs."""
        return list(dict.fromkeys(feature for feature, _ in self.series))

    @property
    def changes(self) -> list[Change]:
        """The latest changes by seq, without curves."""
        return [change for _, change in self.results.changes]

    def span(self) -> tuple[int, int]:
        """Return the first seq of any series and the stream's newest seq."""
        firsts = [series.first_seq for series in self.series.values()]
        return min(firsts, default=0), max(self.results.newest_seq, 0)

    def largest(self, method: Method) -> float:
        """Return the largest current importance by a method: the scale of its numbers."""
        newest = [s.newest.value for (_, m), s in self.series.items() if m == method]
        return max(map(abs, newest), default=0.0)

    def ranked(self, method: Method) -> list[tuple[str, Estimate]]:
        """Return the features that a method explains, currently most important first."""
        newest = [(f, series.newest) for (f, m), series in self.series.items() if m == method]
        return sorted(newest, key=lambda each: -each[1].value)
