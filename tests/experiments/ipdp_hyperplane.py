"""iPDP, Section 4.2: a hyperplane that is another one after 20,000 records.

A Hoeffding Adaptive Tree, α = 0.001, 20 points over the last 2,000 values. The paper spans them
from the smallest to the largest; ours run from their 5 % to their 95 % quantile. The paper prints
neither the number of records nor the noise nor any result: 40,000, and a standard deviation of 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import mean, median
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pipeline.config import DriftSettings
from pipeline.evaluate import evaluator_for
from pipeline.explain import IncrementalPDP, IncrementalPFI, explain_together
from pipeline.explain.losses import cross_entropy
from pipeline.stages.watch import Watch
from tests.experiments import drift_streams as streams
from tests.experiments.experiment import Line, Report, Task

FEATURES = ("x1", "x2")
DRIFT, RECORDS = 20_000, 40_000
EVERY = 200

PAPER = {
    "x1": ("around 100, rising", "around 200, falling"),
    "x2": ("around 200, falling", "around 100, rising"),
}
"""What follows from the means and the weights that the paper prints; Figure 5 shows it for x1."""


def explain(*, alpha: float, seed: int) -> dict[str, Any]:
    """Return curves and importances before and after the drift, and when each was noticed."""
    model = streams.adaptive_tree(seed)
    ask = evaluator_for(model)
    common: dict[str, Any] = {"alpha": alpha, "seed": seed, "evaluator": ask}
    pdp = IncrementalPDP(
        model, FEATURES, grid_size=20, storage_size=2_000, warm_up=100, categorical=[], **common
    )
    pfi = IncrementalPFI(model, FEATURES, loss=cross_entropy, **common)
    settings = DriftSettings().of("loss")
    assert settings is not None
    watches = {
        name: Watch(settings, "")
        for name in (*(f"{m} {f}" for m in ("iPDP", "iPFI") for f in FEATURES), "loss")
    }
    noticed: dict[str, int] = {}
    curves: dict[str, dict[str, Any]] = {f: {} for f in FEATURES}
    course: list[dict[str, float]] = []
    for t, (x, y) in enumerate(islice(streams.hyperplane(seed, DRIFT), RECORDS)):
        [prediction] = ask(x, [{}])
        explain_together([pdp, pfi], x, y)
        watched = {"loss": cross_entropy(y, prediction)}
        for name, each in (("iPDP", pdp), ("iPFI", pfi)):
            watched |= {f"{name} {f}": v for f, v in each.increments.items()}
        for name, number in watched.items():
            if watches[name].update(number) and t >= DRIFT:
                noticed.setdefault(name, t - DRIFT)
        if t in (DRIFT - 1, RECORDS - 1):
            for f in FEATURES:
                curves[f]["before" if t < DRIFT else "after"] = pdp.curves[f]
        if t % EVERY == 0:
            course.append(
                {f"iPFI {f}": pfi.values[f] for f in FEATURES}
                | {f"iPDP {f}": pdp.values[f] for f in FEATURES}
            )
        model.learn_one(x, y)
    return {"curves": curves, "noticed": noticed, "course": course}


@dataclass(frozen=True)
class HyperplaneCurves:
    """The curves turn; importances do not tell."""

    name: str = "ipdp-hyperplane"
    title: str = "the effects on the hyperplane stream before and after its drift"
    source: str = "iPDP, Section 4.2 and Figure 5"
    runs: int = 5

    def tasks(self, runs: int) -> list[Task]:
        return [
            Task(f"run {seed}", explain, {"alpha": 0.001, "seed": seed})
            for seed in range(1, runs + 1)
        ]

    def report(self, results: Mapping[str, Any]) -> Report:
        lines, rows, right = [], [], 0
        for feature, paper in PAPER.items():
            for when, expected in zip(("before", "after"), paper, strict=True):
                told = [_told(result["curves"][feature][when]) for result in results.values()]
                middle = mean(centre for centre, _ in told)
                rising = sum(slope > 0 for _, slope in told)
                right += rising if "rising" in expected else len(told) - rising
                ours = f"around {middle:.0f}, rising in {rising} of {len(told)} runs"
                lines.append(Line(f"curve of {feature} {when} the drift", ours, expected))
                rows.append(f"| curve of {feature}, {when} | {ours} | {expected} |")
        for name in (*(f"{m} {f}" for m in ("iPDP", "iPFI") for f in FEATURES), "loss"):
            delays = [result["noticed"].get(name) for result in results.values()]
            known = [d for d in delays if d is not None]
            shown = f"{median(known):,.0f}" if known else "–"
            rows.append(
                f"| drift noticed on {name}, records after it | {shown} "
                f"({len(known)} of {len(delays)} runs) | not printed |"
            )
        total = 2 * len(FEATURES) * len(results)
        sentence = (
            f"{'Equal' if right == total else 'Worse'}: {right} of {total} curves have the "
            "direction that the hyperplane has, in the range that the features have then. Also the "
            "loss tells of this drift; where and how the model's answers turned, only the curves "
            "tell."
        )
        head = "| what | ours | paper |\n| --- | --- | --- |"
        first = next(iter(results.values()))
        return Report(
            lines, "\n".join((head, *rows)), sentence, lambda figure: _draw(figure, first)
        )


def _told(curve: tuple[list[float], list[float]]) -> tuple[float, float]:
    """Return the middle of the grid, and the slope of the line through the effects."""
    grid, effect = curve
    slope, _ = np.polyfit(grid, effect, 1)
    return float(np.mean(grid)), float(slope)


def _draw(figure: Figure, result: Mapping[str, Any]) -> None:
    """Draw both curves of each feature, and iPFI over time: Figure 5."""
    figure.set_size_inches(8, 3)
    *panels, last = figure.subplots(1, 3)
    for axes, feature in zip(panels, FEATURES, strict=True):
        for when, color in (("before", "C0"), ("after", "C3")):
            axes.plot(*result["curves"][feature][when], color=color, label=when)
        axes.set_xlabel(feature)
        axes.legend(fontsize=7)
    panels[0].set_ylabel("P(class 1)")
    for feature, color in zip(FEATURES, ("C1", "C2"), strict=True):
        course = [point[f"iPFI {feature}"] for point in result["course"]]
        last.plot([EVERY * i for i in range(len(course))], course, color=color, label=feature)
    last.axvline(DRIFT, color="#333333", lw=0.8, ls="--")
    last.set_xlabel("records")
    last.set_ylabel("iPFI")
    last.legend(fontsize=7)


EXPERIMENT = HyperplaneCurves()
