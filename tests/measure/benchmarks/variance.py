"""What each default buys: how far explanations are off, times what they cost."""

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fluxplain.config.explain_settings import PDPSettings, PFISettings, SAGESettings
from fluxplain.evaluate import Inputs, Table
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.parameter_checks import ALL
from tests.kit.command import Clock
from tests.measure.benchmarks.timing import Figure, Run, Stopwatch
from tests.measure.benchmarks.variance_streams import (
    STREAMS,
    Stream,
    relative,
    relative_of_curves,
)

RECORDS = 3000
"""Of a run, before the change and after it."""

WARM_UP = 250
"""Records until every storage is full."""

SEEDS = 16

CHECKED_EVERY = 100
"""Records between two looks at the error after a change."""

ALPHAS = (0.001, 0.005, 0.01)

METHODS: Mapping[str, Any] = {"iPFI": IncrementalPFI, "iSAGE": IncrementalSAGE}

DEFAULTS: Mapping[tuple[str, str], Any] = {
    ("iPFI", "M"): PFISettings().inner_samples,
    ("iSAGE", "m"): SAGESettings().inner_samples,
    ("iPFI", "reservoir_size"): PFISettings().reservoir_size,
    ("iSAGE", "reservoir_size"): SAGESettings().reservoir_size,
    ("iPDP", "grid_size"): PDPSettings().grid_size,
}
"""Method and setting → the product's default."""

TRIED: Mapping[tuple[str, str], Sequence[Any]] = {
    ("iPFI", "M"): (1, 2, 5, 10, ALL),
    ("iSAGE", "m"): (2, 3, 5, 10, ALL),
    ("iPFI", "reservoir_size"): (50, 100, 200),
    ("iSAGE", "reservoir_size"): (50, 100, 200),
    ("iPDP", "grid_size"): (5, 10, 20),
}

Cell = tuple[str, str, Any]
"""Method, setting and its value."""

CELLS: list[Cell] = [(*key, value) for key, values in TRIED.items() for value in values]


@dataclass
class Measured:
    """The relative squared errors of one stream, a number for each seed, and the times."""

    errors: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    static: dict[tuple[str, float], list[float]] = field(default_factory=lambda: defaultdict(list))
    tracking: dict[tuple[str, float], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    watch: Stopwatch = field(default_factory=Stopwatch)

    def error(self, cell: Cell) -> float:
        return statistics.fmean(self.errors[cell])

    def time_ratio(self, cell: Cell, other: Cell) -> float:
        """Return the median over blocks of records, in which all take turns."""
        pairs = self.watch.pairs((str(cell),), (str(other),))
        return statistics.median(ours / theirs for ours, theirs in pairs)


def error_for_time(run: Run) -> Iterator[Figure]:
    """Measure the squared error of explanations times the time of a record, for each default.

    Five streams with models that learn no more: a linear model on independent Gaussian features
    and on features with an autocorrelation of 0.9, with exact truths; an ARF of ten trees on
    agrawal, a logistic regression on elec2 records drawn at random, and a regression tree on
    Friedman's function, whose truth is a run of 20,000 other records with the whole reservoir.
    The error is the mean over the features of (estimate − truth)² in units of the truth's squared
    total, at the end of 3,000 records, mean of 16 seeds; that of iPDP is of the curve, at 41 points
    from the 5 % quantile to the 95 % quantile. One setting is varied, the others have the product's
    defaults. The time is that of `explain_one`, all settings in turns. The ratio is error² × time
    by that of the default, the geometric mean over the streams, with the smallest and the largest
    in brackets: below 1, a value is worth more than the default.

    alpha costs no time. Its error is given twice: after 3,000 records in which nothing changes, and
    as the mean over the 3,000 records after the model is replaced by one of another concept. There
    the ratio is error² by that of alpha = 0.001. From both follows how close changes must be for a
    larger alpha to have the smaller mean square error.
    """
    found = {}
    for name, make in STREAMS.items():
        found[name] = measured(make(), range(SEEDS), RECORDS, run.clock)
    yield from figures(found)


def measured(stream: Stream, seeds: Sequence[int], records: int, clock: Clock) -> Measured:
    truth = {method: stream.truth(method.lower(), 0) for method in METHODS}
    after = {method: stream.truth(method.lower(), 1) for method in METHODS}
    curves = stream.curves()
    result = Measured()
    for seed in seeds:
        clock.progress(partial("{}, seed {}".format, stream.name, seed))
        explainers = explained(stream, seed, records, result.watch)
        for cell, explainer in explainers.items():
            if isinstance(explainer, IncrementalPDP):
                error = relative_of_curves(explainer.curves, curves)
            else:
                error = relative(explainer.values, truth[cell[0]])
            result.errors[cell].append(error)
        for key, (static, tracking) in followed(stream, seed, records, truth, after).items():
            result.static[key].append(static)
            result.tracking[key].append(tracking)
    return result


def explained(stream: Stream, seed: int, records: int, watch: Stopwatch) -> dict[Cell, Any]:
    """Return explainers with all settings after so many records, which they took in turns.

    Their order is another one for each record, since each leaves the caches to the next. While
    storages fill, no time counts.
    """
    explainers = {cell: explainer(stream, cell, seed) for cell in CELLS}
    turns, rng = [*explainers.items()], random.Random(seed)
    for t, (x, ys) in enumerate(stream.draw(records, seed), 1):
        timer = watch if t > WARM_UP else Stopwatch()
        rng.shuffle(turns)
        for cell, each in turns:
            arguments = (x,) if isinstance(each, IncrementalPDP) else (x, ys[0])
            timer.time(str(cell), each.explain_one, *arguments)
    return explainers


def explainer(stream: Stream, cell: Cell, seed: int) -> Any:
    """Return an explainer with the product's defaults, but for one setting."""
    method, setting, value = cell
    options: dict[str, Any] = {"seed": seed, "evaluator": stream.evaluators[0]}
    if method == "iPDP":
        return IncrementalPDP(None, stream.features, categorical=[], **{setting: value}, **options)
    samples = {"iPFI": "M", "iSAGE": "m"}[method]
    given = {samples: DEFAULTS[method, samples], setting: value}
    given["inner_samples"] = given.pop(samples)
    return METHODS[method](None, stream.features, loss=stream.loss, **given, **options)


def followed(
    stream: Stream,
    seed: int,
    records: int,
    truth: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
) -> dict[tuple[str, float], tuple[float, float]]:
    """Return method and alpha → the error before the model changes, and its mean after that."""
    model = Replaced(stream)
    options = {"loss": stream.loss, "alpha": ALPHAS, "seed": seed, "evaluator": model}
    explainers = {
        method: kind(
            None,
            stream.features,
            inner_samples=DEFAULTS[method, "M" if method == "iPFI" else "m"],
            **options,
        )
        for method, kind in METHODS.items()
    }
    static: dict[tuple[str, float], float] = {}
    later: dict[tuple[str, float], list[float]] = defaultdict(list)
    for t, (x, ys) in enumerate(stream.draw(2 * records, seed), 1):
        model.used = int(t > records)
        explain_together([*explainers.values()], x, ys[model.used])
        if t == records or (t > records and t % CHECKED_EVERY == 0):
            for method, each in explainers.items():
                for alpha in ALPHAS:
                    values = each.at(alpha).values
                    if t == records:
                        static[method, alpha] = relative(values, truth[method])
                    else:
                        later[method, alpha].append(relative(values, after[method]))
    return {key: (static[key], statistics.fmean(later[key])) for key in static}


class Replaced:
    """An evaluator of the model in use, that of the concept ``used``."""

    def __init__(self, stream: Stream) -> None:
        self._evaluators = stream.evaluators
        self.used = 0

    def __call__(self, inputs: Inputs) -> Table:
        return self._evaluators[self.used](inputs)


def figures(found: Mapping[str, Measured]) -> Iterator[Figure]:
    """Yield a figure for each value of each setting."""
    each = [*found.values()]
    for cell in CELLS:
        yield _setting(cell, each)
    for method in METHODS:
        static, tracking = (
            {alpha: [statistics.fmean(of[method, alpha]) for of in errors] for alpha in ALPHAS}
            for errors in ([m.static for m in each], [m.tracking for m in each])
        )
        yield from alpha_figures(method, static, tracking)


def _setting(cell: Cell, each: Sequence[Measured]) -> Figure:
    method, setting, value = cell
    default = (method, setting, DEFAULTS[method, setting])
    errors = [m.error(cell) / m.error(default) for m in each]
    times = [m.time_ratio(cell, default) for m in each]
    mark = " (default)" if cell == default else ""
    micros = ", ".join(f"{m.watch.microseconds(str(cell)):,.0f}" for m in each)
    return _figure(
        f"{method}, {setting} = {value}{mark}: error² × time",
        f"error² {_mean(errors):.2f}, time {_mean(times):.2f} of the default's; {micros} µs, "
        f"error {_percents([m.error(cell) for m in each])}",
        f"{setting} = {default[2]}",
        [error * time for error, time in zip(errors, times, strict=True)],
    )


Squares = Mapping[float, Sequence[float]]
"""alpha → mean square error on each stream."""


def alpha_figures(method: str, static: Squares, tracking: Squares) -> Iterator[Figure]:
    """Yield each alpha's errors without and after a change, and when a larger one is better."""
    first = ALPHAS[0]
    for when, squares in (("nothing changes", static), ("after a change", tracking)):
        for alpha in ALPHAS:
            yield _figure(
                f"{method}, alpha = {alpha}: error², {when}",
                f"error {_percents(squares[alpha])}",
                f"alpha = {first}",
                [ours / other for ours, other in zip(squares[alpha], squares[first], strict=True)],
            )
    for alpha in ALPHAS[1:]:
        columns = zip(static[first], tracking[first], static[alpha], tracking[alpha], strict=True)
        between = [break_even(*each) for each in columns]
        yield Figure(
            f"{method}, alpha = {alpha}: better than {first} if changes are closer than",
            f"{', '.join(f'{each:,.0f}' for each in between)} records",
            f"{RECORDS:,} records measured after a change",
            statistics.median(between) / RECORDS,
            (min(between) / RECORDS, max(between) / RECORDS),
        )


def break_even(static: float, tracking: float, other: float, other_tracking: float) -> float:
    """Return how many records lie between changes if two rates have the same mean square error.

    The squares are those of the smaller rate while nothing changes and after a change, then those
    of the larger one; infinite if that one is better while nothing changes, too.

    Examples
    --------
    >>> break_even(1.0, 13.0, 2.0, 4.0)  # 1 + 12 · 3,000 / n = 2 + 2 · 3,000 / n
    30000.0
    """
    if other <= static:
        return math.inf
    return RECORDS * ((tracking - static) - (other_tracking - other)) / (other - static)


def _figure(name: str, ours: str, other: str, ratios: Sequence[float]) -> Figure:
    return Figure(name, ours, other, _mean(ratios), (min(ratios), max(ratios)))


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _percents(squares: Sequence[float]) -> str:
    """Return root mean square errors, in per cent of the total."""
    return ", ".join(f"{100.0 * math.sqrt(square):.2f}" for square in squares) + " %"
