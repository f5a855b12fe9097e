"""iPDP, Figures 2 and 8: agrawal with a real drift, and then a virtual one.

First the class depends on age and education, then on age and salary, and at last only those come
who earn more than 90,000. An Adaptive Random Forest of 10 trees, α = 0.001. The paper prints
neither the records of each interval nor the new range of salaries: 10,000, and the upper half.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from river import forest

from pipeline.baselines import batch_pdp
from pipeline.evaluate import evaluator_for
from pipeline.explain import IncrementalPDP, IncrementalPFI, explain_together
from pipeline.explain.losses import cross_entropy
from tests.experiments import drift_streams as streams
from tests.experiments.experiment import Line, Report, Task
from tests.experiments.streams import Record

FEATURE = "salary"
INTERVALS = ("education decides", "real drift: salary decides", "virtual drift: only high salaries")
LENGTH = 10_000
BATCH = 1_000
"""Newest records of which the batch PDP is made: the effective window of α = 0.001 is 2,000."""

EVERY = 100


def observations(seed: int) -> Iterator[Record]:
    """Return the three intervals."""
    yield from islice(streams.agrawal(seed, 2), LENGTH)
    yield from islice(streams.rich(seed + 1, LENGTH), 2 * LENGTH)


def explain(*, alpha: float, seed: int) -> dict[str, Any]:
    """Return, at the end of each interval, the curve of salary and the batch PDP on its points."""
    model = forest.ARFClassifier(n_models=10, seed=seed)
    ask = evaluator_for(model)
    common: dict[str, Any] = {"alpha": alpha, "seed": seed, "evaluator": ask}
    pdp = IncrementalPDP(model, [FEATURE], categorical=[], **common)
    pfi = IncrementalPFI(model, [FEATURE], loss=cross_entropy, **common)
    recent: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    course: list[tuple[float, float]] = []
    for t, (x, y) in enumerate(observations(seed), 1):
        explain_together([pdp, pfi], x, y)
        if t % EVERY == 0:
            course.append((pdp.values[FEATURE], pfi.values[FEATURE]))
        model.learn_one(x, y)
        recent = [*recent[1 - BATCH :], x]
        if t % LENGTH == 0:
            grid, effect = pdp.curves[FEATURE]
            batch = batch_pdp(model, recent, [FEATURE], grids={FEATURE: grid}, evaluator=ask)
            ends.append(
                {
                    "grid": grid,
                    "effect": effect,
                    "batch": batch[FEATURE].effect,
                    "importance": pdp.values[FEATURE],
                    "ipfi": pfi.values[FEATURE],
                }
            )
    return {"ends": ends, "course": course}


@dataclass(frozen=True)
class AgrawalCurves:
    """The curve of salary through both drifts."""

    name: str = "ipdp-agrawal"
    title: str = "the effect of salary through a real and a virtual drift of agrawal"
    source: str = "iPDP, Figures 2 and 8"
    runs: int = 3

    def tasks(self, runs: int) -> list[Task]:
        return [
            Task(f"run {seed}", explain, {"alpha": 0.001, "seed": seed})
            for seed in range(1, runs + 1)
        ]

    def report(self, results: Mapping[str, Any]) -> Report:
        rows = []
        for i, interval in enumerate(INTERVALS):
            ends = [result["ends"][i] for result in results.values()]
            rows.append(
                f"| {interval} | {mean(end['grid'][0] for end in ends):,.0f} to "
                f"{mean(end['grid'][-1] for end in ends):,.0f} | "
                f"{mean(end['importance'] for end in ends):.3f} | "
                f"{mean(end['ipfi'] for end in ends):.3f} | {mean(map(_distance, ends)):.3f} |"
            )
        head = (
            "| at the end of | points of salary | importance of the curve | iPFI | "
            f"mean distance from the batch PDP |\n{'| --- ' * 5}|"
        )
        importance = [
            mean(result["ends"][i]["importance"] for result in results.values()) for i in range(3)
        ]
        low = mean(result["ends"][2]["grid"][0] for result in results.values())
        farthest = max(_distance(end) for result in results.values() for end in result["ends"])
        lines = [
            Line("salary before the real drift", f"importance {importance[0]:.3f}", "no effect"),
            Line("salary after it", f"importance {importance[1]:.3f}", "relevant"),
            Line("salary after the virtual drift", f"from {low:,.0f} on", "a new range"),
            Line("farthest from the batch PDP", f"{farthest:.3f}", "the same effects"),
        ]
        same = importance[1] > 3 * importance[0] and low > 90_000
        sentence = (
            f"{'Equal' if same else 'Worse'}: the curve is flat before the real drift, moves after "
            "it, and follows the new range after the virtual one, within "
            f"{farthest:.3f} of the batch PDP of the model at that time (in probability, mean over "
            "the points). What remains is that iPDP averages over the model's last 1/α states."
        )
        first = next(iter(results.values()))
        return Report(
            lines, "\n".join((head, *rows)), sentence, lambda figure: _draw(figure, first)
        )


def _distance(end: Mapping[str, Any]) -> float:
    return float(np.abs(np.subtract(end["effect"], end["batch"])).mean())


def _draw(figure: Figure, result: Mapping[str, Any]) -> None:
    """Draw the curves with the batch PDP, and both importances over time: Figure 8."""
    figure.set_size_inches(9, 5)
    top, *below = figure.subplot_mosaic([["top"] * 3, list(INTERVALS)]).values()
    times = [EVERY * (i + 1) for i in range(len(result["course"]))]
    for label, place, color in (("iPDP", 0, "C3"), ("iPFI", 1, "C1")):
        top.plot(times, [point[place] for point in result["course"]], color=color, label=label)
    for i in (1, 2):
        top.axvline(i * LENGTH, color="#333333", lw=0.8, ls="--")
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


EXPERIMENT = AgrawalCurves()
