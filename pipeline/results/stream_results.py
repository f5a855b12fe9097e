"""The results of one stream, a view at one smoothing rate, and an overview of all streams."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.results.feature_names import in_order
from fluxplain.results.freshness import Freshness
from fluxplain.results.notes import NO_NOTES, Notes
from fluxplain.results.pdp_history import PdpHistory
from fluxplain.results.performance import Performance, Throughput
from fluxplain.results.recent_reasons import RecentReasons
from fluxplain.results.series import Estimate, Series
from fluxplain.schemas import Change, Note
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.schemas.wording import measured

TOP = 3
"""Most important features in a row of the overview."""

Key = tuple[str, Method]
"""A feature and a method."""


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


@dataclass(slots=True)
class StreamResults:
    """The results of one stream.

    ``series`` is (method, alpha) → feature → importance over time; ``curves`` is (feature, alpha) →
    curves. ``times`` are the observations' own times, in seconds since 1970. ``changes`` holds the
    latest changes by seq, without curves, each with the store's version at which it was added.
    ``changed_at`` is the timestamp of the latest, in milliseconds since 1970; 0 if unknown.
    """

    series: dict[tuple[Method, float], dict[str, Series]] = field(default_factory=dict)
    curves: dict[tuple[str, float], PdpHistory] = field(default_factory=dict)
    times: Series = field(default_factory=Series)
    performance: Performance = field(default_factory=Performance)
    throughput: Throughput = field(default_factory=Throughput)
    changes: list[tuple[int, Change]] = field(default_factory=list)
    change_count: int = 0
    changed_at: int = 0
    reasons: RecentReasons = field(default_factory=RecentReasons)
    letters: int = 0
    records: int = 0
    labels: LabelCounts | None = None
    newest_prediction: int = -1
    newest_seq: int = -1
    last_result: int = 0
    freshness: Freshness = field(default_factory=Freshness)

    def renew(self, change_id: str, version: int) -> None:
        """Count a change as news of a version, since something was noted about it."""
        self.changes = [(version if c.id == change_id else v, c) for v, c in self.changes]

    def trim(self, most: int) -> None:
        """Keep at most so many changes."""
        del self.changes[:-most]

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

    def choose(
        self, alphas: Sequence[float], method: Method | None, alpha: float | None
    ) -> tuple[Method | None, float | None]:
        """Choose method and smoothing rate to show: the given ones if present, else the first."""
        chosen = method if method in self.methods else next(iter(self.methods), None)
        known = Alphas(alphas).known(None, self.alphas(chosen))
        return chosen, alpha if alpha in known else next(iter(known), None)


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's results at one smoothing rate, for terminal and figures.

    ``known`` are the names of all features, if these are only some; they decide about colours.
    """

    results: StreamResults
    alpha: float | None
    known: Sequence[str] = ()

    @property
    def places(self) -> dict[str, int]:
        """Feature → its place among all names, from which its colour follows."""
        names = in_order([*self.known, *self.features])
        return {name: place for place, name in enumerate(names)}

    @property
    def series(self) -> dict[Method, dict[str, Series]]:
        """Method → feature → importance over time."""
        return {
            m: found for (m, alpha), found in self.results.series.items() if alpha == self.alpha
        }

    @property
    def methods(self) -> list[Method]:
        """The methods with explanations."""
        return [method for method in METHODS if method in self.series]

    @property
    def features(self) -> list[str]:
        """The explained features, groups and pairs."""
        return list(dict.fromkeys(f for found in self.series.values() for f in found))

    @property
    def changes(self) -> list[Change]:
        """The latest changes by seq, without curves."""
        return [change for _, change in self.results.changes]

    @property
    def drifts(self) -> list[Change]:
        """The latest changes that are no notices."""
        return [change for change in self.changes if change.kind == "drift"]

    @property
    def curves(self) -> dict[str, list[Curve]]:
        """Feature or pair → its curves over time; the last is the newest."""
        known = self.results.curves.items()
        found = {feature: each.curves for (feature, a), each in known if a == self.alpha}
        return {feature: curves for feature, curves in found.items() if curves}

    def ice(self, feature: str) -> list[Curve]:
        """Return the newest ICE curves of a feature."""
        history = self.results.curves.get((feature, self.alpha or 0.0))
        return [] if history is None else history.ice_curves

    def span(self) -> tuple[int, int]:
        """Return the first seq of any series and the stream's newest seq."""
        firsts = [each.first_seq for found in self.series.values() for each in found.values()]
        return min(firsts, default=0), max(self.results.newest_seq, 0)

    def newest(self, method: Method) -> dict[str, Estimate]:
        """Return feature → current importance by a method."""
        return {feature: each.newest for feature, each in self.series.get(method, {}).items()}

    def largest(self, method: Method) -> float:
        """Return the largest current importance by a method: the scale of its numbers."""
        return max((abs(each.value) for each in self.newest(method).values()), default=0.0)

    def texts(self, method: Method) -> dict[str, str]:
        """Return feature → current importance ± standard error, as text."""
        scale, newest = self.largest(method), self.newest(method)
        return {f: measured(each.value, each.std_error, scale) for f, each in newest.items()}

    def ranked(self, method: Method) -> list[tuple[str, Estimate]]:
        """Return the features that a method explains, currently most important first."""
        return sorted(self.newest(method).items(), key=lambda each: -each[1].value)


class Row(NamedTuple):
    """One stream: its results, and values computed from them, None with too little data.

    ``top`` has the most important features by ``method`` and ``alpha``. ``notes`` are those of all
    streams.
    """

    stream: str
    results: StreamResults
    rate: float
    loss: float | None
    accuracy: float | None
    method: Method | None
    alpha: float | None
    top: list[tuple[str, Series]]
    notes: Notes = NO_NOTES

    @property
    def change(self) -> Change | None:
        """The latest change that is not of a muted feature."""
        latest = (change for _, change in reversed(self.results.changes))
        return next((change for change in latest if not self.notes.hides(change)), None)

    @property
    def note(self) -> Note | None:
        """Who acknowledged this change, and why; None if nobody did."""
        return None if self.change is None else self.notes.acknowledged(self.change.id)


def overview(
    streams: Mapping[str, StreamResults],
    alphas: Alphas,
    method: Method | None,
    now: float,
    notes: Notes = NO_NOTES,
) -> list[Row]:
    """Return a row for each stream, the one with the latest change first."""
    rows = (_row(name, each, alphas, method, now) for name, each in streams.items())
    return latest_first(row._replace(notes=notes) for row in rows)


def latest_first(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by their latest change, the latest first; rows without changes follow by name."""
    return sorted(rows, key=lambda row: (-row.results.changed_at, _natural(row.stream)))


def _row(
    name: str, stream: StreamResults, alphas: Alphas, wanted: Method | None, now: float
) -> Row:
    method, alpha = stream.choose(alphas.of(name), wanted, None)
    series = {} if method is None or alpha is None else stream.series[method, alpha]
    top = sorted(series.items(), key=lambda each: (-each[1].newest.value, each[0]))[:TOP]
    rate, newest = stream.throughput.rate(now), stream.performance.newest
    return Row(name, stream, rate, *newest, method, alpha, top)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key in which 2 comes before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]
