"""iPDP, Figures 2 and 8: the effect of salary through a real and a virtual drift of agrawal.

First the class depends on age and education, then on age and salary, and at last salaries are
multiplied by a random number from 1 to 1.3334. An Adaptive Random Forest of 10 trees and α = 0.001,
as the paper has it; it prints nothing else. From the authors' script: 10,000 records in each
interval, 20 points from the smallest to the largest of the last 100 values, and the zero-one loss
for iPFI. The script differs from both: its model is five bagged Hoeffding Adaptive Trees, its
intervals repeat the same records, and its batch PDP is of all records of an interval; ours of the
newest 1,000, about the memory of iPDP, on its points.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from statistics import mean
from typing import Any

from matplotlib.figure import Figure
from river import forest

from deploy.docs.words import table
from fluxplain.baselines import batch_pdp
from fluxplain.evaluate import evaluator_for
from fluxplain.explain import IncrementalPDP, IncrementalPFI, explain_together
from fluxplain.explain.losses import zero_one
from tests.measure.experiments import drift_streams as streams
from tests.measure.experiments.errors import distance_between
from tests.measure.experiments.experiment import Report, Results, seeded
from tests.measure.experiments.streams import Record

FEATURE = "salary"
INTERVALS = ("education decides", "real drift: salary decides", "virtual drift: higher salaries")
TOLERANCE = 0.05
"""Ours for “the same effects”: mean distance from the batch PDP, of probabilities."""


def observations(seed: int, length: int) -> Iterator[Record]:
    yield from islice(streams.agrawal(seed, 2), length)
    yield from islice(streams.widened(seed + 1, length), 2 * length)


def explain(*, alpha: float, length: int, batch: int, every: int, seed: int) -> dict[str, Any]:
    """Return, at the end of each interval, the curve of salary and the batch PDP on its points.

    The batch PDP is of the newest ``batch`` records; importances are returned for every ``every``.
    """
    model = forest.ARFClassifier(n_models=10, seed=seed)
    ask = evaluator_for(model)
    common: dict[str, Any] = {"alpha": alpha, "seed": seed, "evaluator": ask}
    pdp = IncrementalPDP(
        model, [FEATURE], grid="range", grid_size=20, window=100, categorical=[], **common
    )
    pfi = IncrementalPFI(model, [FEATURE], loss=zero_one, **common)
    recent: deque[dict[str, Any]] = deque(maxlen=batch)
    ends: list[dict[str, Any]] = []
    course: list[tuple[float, float]] = []
    for t, (x, y) in enumerate(observations(seed, length), 1):
        explain_together([pdp, pfi], x, y)
        if t % every == 0:
            course.append((pdp.values[FEATURE], pfi.values[FEATURE]))
        model.learn_one(x, y)
        recent.append(x)
        if t % length == 0:
            grid, effect = pdp.curves[FEATURE]
            curve = batch_pdp(model, [*recent], [FEATURE], grids={FEATURE: grid}, evaluator=ask)
            ends.append(
                {
                    "grid": grid,
                    "effect": effect,
                    "batch": curve[FEATURE].effect,
                    "importance": pdp.values[FEATURE],
                    "ipfi": pfi.values[FEATURE],
                }
            )
    return {"ends": ends, "course": course, "every": every, "length": length}


def report(results: Results) -> Report:
    ends = [[result["ends"][i] for result in results.values()] for i in range(len(INTERVALS))]
    distances = [[distance_between(e["effect"], e["batch"]) for e in each] for each in ends]
    lowest = [mean(end["grid"][0] for end in each) for each in ends]
    highest = [mean(end["grid"][-1] for end in each) for each in ends]
    importance = [mean(end["importance"] for end in each) for each in ends]
    columns = {
        "at the end of": INTERVALS,
        "points of salary": [f"{a:,.0f} to {b:,.0f}" for a, b in zip(lowest, highest, strict=True)],
        "importance of the curve": [f"{each:.3f}" for each in importance],
        "iPFI": [f"{mean(end['ipfi'] for end in each):.3f}" for each in ends],
        "mean distance from the batch PDP": [f"{mean(each):.3f}" for each in distances],
    }
    farthest = max(distance for each in distances for distance in each)
    claims = {
        "importance at least three times as large after the real drift": (
            importance[1] >= 3 * importance[0]
        ),
        "points that reach at least 20 % farther after the virtual one": (
            highest[2] >= 1.2 * highest[1]
        ),
        f"every curve within {TOLERANCE} of the batch PDP": farthest <= TOLERANCE,
    }
    told = "; ".join(f"{claim}: {'yes' if holds else 'no'}" for claim, holds in claims.items())
    sentence = (
        f"{'Equal' if all(claims.values()) else 'Worse'}, by limits of our own, since the "
        f"paper shows pictures: {told} (the farthest is {farthest:.3f}: in probability, mean "
        "over the points). iPDP averages over the model's last 1/α states, the batch PDP "
        "takes the last one."
    )
    rows = zip(*columns.values(), strict=True)
    first = next(iter(results.values()))
    return Report(table([*columns], [*rows]), sentence, partial(_draw, first))


def _draw(result: Mapping[str, Any], figure: Figure) -> None:
    """Draw the curves with the batch PDP, and both importances over time: Figure 8."""
    figure.set_size_inches(9, 5)
    top, *below = figure.subplot_mosaic([["top"] * 3, list(INTERVALS)]).values()
    times = [result["every"] * (i + 1) for i in range(len(result["course"]))]
    for label, place, color in (("iPDP", 0, "C3"), ("iPFI", 1, "C1")):
        top.plot(times, [point[place] for point in result["course"]], color=color, label=label)
    for i in (1, 2):
        top.axvline(i * result["length"], color="#333333", lw=0.8, ls="--")
    top.set_ylabel("importance of salary")
    top.set_xlabel("records")
    top.legend(fontsize=7)
    for axes, interval, end in zip(below, INTERVALS, result["ends"], strict=True):
        axes.plot(end["grid"], end["effect"], "o-", ms=3, color="C3", label="iPDP")
        axes.plot(end["grid"], end["batch"], "--", color="C0", label="batch PDP")
        axes.set_title(interval, fontsize=8)
        axes.set_ylim(0, 1)
        axes.legend(fontsize=7)
    below[0].set_ylabel("P(class 1)")


RUNS = 3

tasks = seeded(explain, alpha=0.001, length=10_000, batch=1_000, every=100)
