"""iPDP, Section 4.2 and Figure 5: the effects on the hyperplane stream before and after its drift.

A Hoeffding Adaptive Tree, α = 0.001, 20 points from the smallest to the largest of the last 2,000
values. 20,000 records after the drift, the noise, and iPFI with the zero-one loss and 3 draws are
those of the authors' script, since the paper prints none of them nor any result. The script's iPDP
has α = 0.01 and a memory of 100 values, and its model has learned 11 records before.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from statistics import mean, median
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from deploy.docs.words import table
from fluxplain.config import DriftSettings
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.evaluate import evaluator_for
from fluxplain.explain import IncrementalPDP, IncrementalPFI, explain_together
from fluxplain.explain.losses import cross_entropy, zero_one
from tests.kit.changes import shifts_at
from tests.kit.support import outputs_of
from tests.measure.experiments import drift_streams as streams
from tests.measure.experiments.experiment import Report, Results, seeded

FEATURES = ("x1", "x2")
WATCHED = (*(f"{method} {feature}" for method in ("iPDP", "iPFI") for feature in FEATURES), "loss")

PAPER = {
    "x1": ("around 100, rising", "around 200, falling"),
    "x2": ("around 200, falling", "around 100, rising"),
}
"""What follows from the means and the weights that the paper prints; Figure 5 shows it for x1."""


def explain(
    *, alpha: float, drift: int, records: int, window: int, every: int, seed: int
) -> dict[str, Any]:
    """Return curves and importances before and after the drift, and when each was noticed.

    The points of the curves span the last ``window`` values.
    """
    model = streams.adaptive_tree(seed)
    ask = evaluator_for(model)
    common: dict[str, Any] = {"alpha": alpha, "seed": seed, "evaluator": ask}
    pdp = IncrementalPDP(
        model,
        FEATURES,
        grid="range",
        grid_size=20,
        window=window,
        warm_up=100,
        categorical=[],
        **common,
    )
    pfi = IncrementalPFI(model, FEATURES, loss=zero_one, inner_samples=3, **common)
    settings = DriftSettings().of("loss")
    assert settings is not None
    watches = {name: SignalWatch(settings, "") for name in WATCHED}
    noticed: dict[str, int] = {}
    curves: dict[str, dict[str, Any]] = {f: {} for f in FEATURES}
    course: list[dict[str, float]] = []
    for t, (x, y) in enumerate(islice(streams.hyperplane(seed, drift), records)):
        [prediction] = outputs_of(ask, x, [{}])
        explain_together([pdp, pfi], x, y)
        watched = {"loss": cross_entropy(y, prediction)}
        for name, each in (("iPDP", pdp), ("iPFI", pfi)):
            watched |= {f"{name} {f}": v for f, v in each.increments.items()}
        for name, number in watched.items():
            if shifts_at(watches[name], t, number) and t >= drift:
                noticed.setdefault(name, t - drift)
        if t in (drift - 1, records - 1):
            for f in FEATURES:
                curves[f]["before" if t < drift else "after"] = pdp.curves[f]
        if t % every == 0:
            course.append(
                {f"iPFI {f}": pfi.values[f] for f in FEATURES}
                | {f"iPDP {f}": pdp.values[f] for f in FEATURES}
            )
        model.learn_one(x, y)
    return {"curves": curves, "noticed": noticed, "course": course, "every": every, "drift": drift}


def report(results: Results) -> Report:
    rows, right = [], 0
    for feature, paper in PAPER.items():
        for when, expected in zip(("before", "after"), paper, strict=True):
            told = [_told(result["curves"][feature][when]) for result in results.values()]
            middle = mean(centre for centre, _ in told)
            rising = sum(slope > 0 for _, slope in told)
            right += rising if "rising" in expected else len(told) - rising
            ours = f"around {middle:.0f}, rising in {rising} of {len(told)} runs"
            rows.append([f"curve of {feature}, {when}", ours, expected])
    noticed = {}
    for name in WATCHED:
        known = [r["noticed"][name] for r in results.values() if name in r["noticed"]]
        after = f"{median(known):,.0f}" if known else "–"
        noticed[name] = f"{after} ({len(known)} of {len(results)} runs)"
        rows.append([f"first alarm on {name}, records after the drift", noticed[name], "–"])
    total = 2 * len(FEATURES) * len(results)
    sentence = (
        f"{'Equal' if right == total else 'Worse'}: {right} of {total} curves have the "
        "direction that the hyperplane has, in the range that the features have then. First "
        "alarms, median of records after the drift: "
        f"{'; '.join(f'{name} {after}' for name, after in noticed.items())}. An alarm does not "
        "say in which direction the model's answers turned, and may come without a drift; the "
        "paper prints none."
    )
    draw = partial(_draw, next(iter(results.values())))
    return Report(table(["what", "ours", "paper"], rows), sentence, draw)


def _told(curve: tuple[list[float], list[float]]) -> tuple[float, float]:
    """Return the middle of the grid, and the slope of the line through the effects."""
    grid, effect = curve
    slope, _ = np.polyfit(grid, effect, 1)
    return float(np.mean(grid)), float(slope)


def _draw(result: Mapping[str, Any], figure: Figure) -> None:
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
        last.plot(
            [result["every"] * i for i in range(len(course))], course, color=color, label=feature
        )
    last.axvline(result["drift"], color="#333333", lw=0.8, ls="--")
    last.set_xlabel("records")
    last.set_ylabel("iPFI")
    last.legend(fontsize=7)


RUNS = 5

tasks = seeded(explain, alpha=0.001, drift=20_000, records=40_000, window=2_000, every=200)
