"""The command ``python -m tests.measure.coverage``."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import typer

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.imputers import InnerSamples
from tests.kit.command import Clock
from tests.measure.coverage import forest
from tests.measure.coverage.streams import STREAMS, WEIGHTS, linear, records, truths

ALPHAS = 0.001, 0.01

SAMPLES: tuple[InnerSamples, ...] = (1, 5, "all")

POINTS = 10
"""Points of each curve that are compared."""

POINTS_OF_CURVES = "points of curves"

ERRORS = 2.0
"""Standard errors on each side of an estimate."""


class Row(NamedTuple):
    """What is estimated, and with which smoothing rate."""

    method: str
    samples: InnerSamples
    alpha: float

    def __str__(self) -> str:
        samples = f", {self.samples} samples" if self.samples else ""
        return f"{self.method}{samples}, alpha {self.alpha:g}"


ROWS = [
    *(Row(method, m, alpha) for method, m, alpha in product(("ipfi", "isage"), SAMPLES, ALPHAS)),
    *(Row("ipdp", 0, alpha) for alpha in ALPHAS),
    *(Row(POINTS_OF_CURVES, 0, alpha) for alpha in ALPHAS),
]

USED = [feature for feature, weight in WEIGHTS.items() if weight]


def coverage(
    runs: Annotated[int, typer.Option(min=2, help="Runs of each stream.")] = 200,
    n: Annotated[int, typer.Option("--records", min=800, help="Records of a run.")] = 2500,
    model: Annotated[str, typer.Option(help="linear, or forest.")] = "linear",
    stream: Annotated[
        list[str], typer.Option(help="Run this stream only. Can be given several times.")
    ] = [*STREAMS],  # noqa: B006
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
) -> None:
    """Print how often value ± 2 std_error holds the true value, and the mean of all runs.

    A model that learns nothing explains five Gaussian features: a linear one with the squared
    error, whose truth is exact, or a forest with the cross-entropy, whose truth is a mean over
    60,000 other records. The same for each point of the linear model's curves.

    Nothing is printed about the feature that the linear model ignores: its values are exactly 0.
    """
    case, clock = CASES[model], Clock()
    print(
        "| stream | estimate | holds the truth | holds the mean of the runs | not known | sd ÷ se |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(processes) as pool:
        for name in stream:
            found = [*pool.map(partial(estimates, name, n, model=model), range(runs))]
            for row, *of_runs in zip(case.rows, *found, strict=True):
                print(_line(name, row, np.array(of_runs)), flush=True)
            clock.say(f"{runs} runs of {n:,} records: {name}")


class Case(NamedTuple):
    """What is explained, and the truth about it."""

    model: Callable[[], Any]
    loss: str
    records: Callable[[str, int, int], Any]
    truths: Callable[[str], dict[str, dict[str, float]]]
    features: Sequence[str]
    rows: Sequence[Row]


CASES = {
    "linear": Case(linear, "squared_error", records, truths, USED, ROWS),
    "forest": Case(
        forest.model,
        "cross_entropy",
        forest.classified,
        forest.truths,
        [*WEIGHTS],
        [row for row in ROWS if row.method != POINTS_OF_CURVES],
    ),
}


def estimates(stream: str, n: int, seed: int, model: str = "linear") -> list[Floats]:
    """Return values, standard errors and truths at the end of a run, shape (3, values) a row."""
    case, features = CASES[model], [*WEIGHTS]
    explained = case.model()
    kinds: dict[str, Any] = {
        "ipfi": partial(IncrementalPFI, explained, features, loss=case.loss),
        "isage": partial(IncrementalSAGE, explained, features, loss=case.loss),
    }
    made = {
        (method, m): kinds[method](inner_samples=m, alpha=ALPHAS, seed=seed)
        for method, m in product(kinds, SAMPLES)
    }
    curves = {
        alpha: IncrementalPDP(explained, features, alpha=alpha, seed=seed) for alpha in ALPHAS
    }
    explainers = [*made.values(), *curves.values()]
    for x, y in case.records(stream, n, seed):
        explain_together(explainers, x, y)
    found, exact = [], case.truths(stream)
    for method, m, alpha in case.rows:
        if method in exact:
            each = made[method, m].at(alpha) if m else curves[alpha]
            of = [(each.values[f], each.std_errors[f], exact[method][f]) for f in case.features]
        else:
            of = [point for feature in USED for point in _points(curves[alpha], feature)]
        found.append(np.array(of).T)
    return found


def _points(pdp: IncrementalPDP, feature: str) -> list[tuple[float, float, float]]:
    """Return the effect at each point of a curve, its standard error and the true effect."""
    (grid, effect), errors = pdp.curves[feature], pdp.curve_errors[feature]
    truth = (WEIGHTS[feature] * float(point) for point in grid)
    points = [*zip(cast(list[float], effect), cast(list[float], errors), truth, strict=True)]
    # runs have unlike numbers of points: as many of each, from one end to the other
    return [points[i * (len(points) - 1) // (POINTS - 1)] for i in range(POINTS)]


def _line(stream: str, row: Row, found: Floats) -> str:
    """Return the line of a row, from its numbers in all runs, shape (runs, 3, values)."""
    values, errors, truth = found.transpose(1, 0, 2)
    known, off = np.isfinite(errors), values - truth
    if not known.any():
        return f"| {stream} | {row} | – | – | 100% | – |"
    shares = [
        np.mean(np.abs(off - centre)[known] <= ERRORS * errors[known])
        for centre in (0.0, off.mean(axis=0))
    ]
    ratio = np.nanmedian(off.std(axis=0, ddof=1) / np.where(known, errors, np.nan))
    return (
        f"| {stream} | {row} | {shares[0]:.1%} | {shares[1]:.1%} | {1 - known.mean():.0%} | "
        f"{ratio:.2f} |"
    )


if __name__ == "__main__":
    typer.run(coverage)
