"""The command ``python -m tests.measure.coverage``."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.imputers import InnerSamples
from tests.kit.command import Clock
from tests.measure.coverage.streams import STREAMS, WEIGHTS, linear, records, truths

ALPHAS = 0.001, 0.01

SAMPLES: tuple[InnerSamples, ...] = (1, 5, "all")

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
]


def coverage(
    runs: Annotated[int, typer.Option(min=2, help="Runs of each stream.")] = 200,
    n: Annotated[int, typer.Option("--records", min=800, help="Records of a run.")] = 2500,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 2,
) -> None:
    """Print how often value ± 2 std_error holds the true value, and the mean of all runs.

    A linear model that learns nothing explains five Gaussian features, of which it ignores one.
    Nothing is printed about that one: its values are exactly 0.
    """
    clock = Clock()
    print(
        "| stream | estimate | holds the truth | holds the mean of the runs | not known | sd ÷ se |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(processes) as pool:
        for stream in STREAMS:
            found = np.array([*pool.map(partial(estimates, stream, n), range(runs))])
            for line in _lines(stream, found):
                print(line, flush=True)
            clock.say(f"{runs} runs of {n:,} records: {stream}")


def estimates(stream: str, n: int, seed: int) -> Floats:
    """Return the values and standard errors at the end of a run, shape (rows, 2, features)."""
    model, features = linear(), [*WEIGHTS]
    of: dict[str, Any] = {
        "ipfi": partial(IncrementalPFI, model, features, loss="squared_error"),
        "isage": partial(IncrementalSAGE, model, features, loss="squared_error"),
    }
    made = {
        (method, m): of[method](inner_samples=m, alpha=ALPHAS, seed=seed)
        for method, m in product(of, SAMPLES)
    }
    curves = {alpha: IncrementalPDP(model, features, alpha=alpha, seed=seed) for alpha in ALPHAS}
    explainers = [*made.values(), *curves.values()]
    for x, y in records(stream, n, seed):
        explain_together(explainers, x, y)
    found = []
    for method, m, alpha in ROWS:
        each = made[method, m].at(alpha) if m else curves[alpha]
        found.append([[*each.values.values()], [*each.std_errors.values()]])
    return np.array(found)


def _lines(stream: str, found: Floats) -> Iterator[str]:
    used = [place for place, weight in enumerate(WEIGHTS.values()) if weight]
    for i, row in enumerate(ROWS):
        values, errors = (found[:, i, which][:, used] for which in (0, 1))
        known = np.isfinite(errors)
        truth = np.array([*truths(stream)[row.method].values()])[used]
        shares = [
            np.mean(np.abs(values - centre)[known] <= ERRORS * errors[known])
            for centre in (truth, values.mean(axis=0))
        ]
        ratio = np.median(values.std(axis=0, ddof=1) / np.where(known, errors, np.nan))
        yield (
            f"| {stream} | {row} | {shares[0]:.1%} | {shares[1]:.1%} | {1 - known.mean():.0%} | "
            f"{ratio:.2f} |"
        )


if __name__ == "__main__":
    typer.run(coverage)
