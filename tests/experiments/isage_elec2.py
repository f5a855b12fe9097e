"""iSAGE, Figure 11: iSAGE, iPFI and MDI of a Hoeffding adaptive tree on elec2.

The paper has a picture, of which it says that all three methods find the two most important
features. A method's value of a feature is averaged over the records before ``vicprice`` varies, and
over those after.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from river import tree

from pipeline.baselines import mean_decrease_in_impurity
from pipeline.explain import IncrementalPFI, IncrementalSAGE, explain_together
from tests.experiments.array_sage import Floats
from tests.experiments.experiment import Line, Report, Task
from tests.experiments.streams import elec2

METHODS = ("iSAGE", "iPFI", "MDI")
PARTS = ("before vicprice varies", "after")
ALPHA = 0.001
CONSTANT_UNTIL = 17_424
"""The record up to which ``vicprice`` has one value."""

EVERY = 250
"""Records from one value that is kept to the next."""

SETTLED = 1000
"""Records that are left out: the smoothing's window, and the tree's first splits."""


def run(*, seed: int) -> dict[str, Any]:
    """Return each method's values of the features, every 250 records.

    Parameters
    ----------
    seed
        Of the tree and the explainers.
    """
    records = elec2()
    features = list(records[0][0])
    model = tree.HoeffdingAdaptiveTreeClassifier(seed=seed)
    options: dict[str, Any] = {"loss": "cross_entropy", "alpha": ALPHA, "inner_samples": "all"}
    explainers = [
        kind(model, features, **options, seed=seed) for kind in (IncrementalSAGE, IncrementalPFI)
    ]
    values: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for t, (x, y) in enumerate(records, start=1):
        importances = explain_together(explainers, x, y)
        model.learn_one(x, y)
        if t % EVERY == 0:
            importances.append(mean_decrease_in_impurity(model, features))
            for method, each in zip(METHODS, importances, strict=True):
                values[method].append([round(value, 5) for value in each.values()])
    return {"features": features, **values}


class Elec2:
    """The experiment; see :class:`~tests.experiments.experiment.Experiment`."""

    name = "isage-elec2"
    title = "iSAGE, iPFI and MDI of a Hoeffding adaptive tree on elec2"
    source = "iSAGE, Figure 11"
    runs = 1

    def tasks(self, runs: int) -> list[Task]:
        """Return one task a run."""
        return [Task(f"run {r}", run, {"seed": r}) for r in range(runs)]

    def report(self, results: Mapping[str, Any]) -> Report:
        """Return the rankings in both parts of the stream, of the first run."""
        result = next(iter(results.values()))
        features = result["features"]
        means = {part: _means(result, part) for part in PARTS}
        tops = {part: _tops(features, each) for part, each in means.items()}
        lines = [
            Line(
                f"two most important features {part}",
                "; ".join(f"{method}: {', '.join(top)}" for method, top in tops[part].items()),
                "the same two in all methods",
            )
            for part in PARTS
        ]
        return Report(lines, _table(features, means), _sentence(tops), partial(_draw, result))


def _means(result: Mapping[str, Any], part: str) -> dict[str, Floats]:
    begin, end = (SETTLED, CONSTANT_UNTIL) if part == PARTS[0] else (CONSTANT_UNTIL, None)
    rows = slice(begin // EVERY, end and end // EVERY)
    return {method: np.mean(result[method][rows], axis=0) for method in METHODS}


def _tops(features: Sequence[str], means: Mapping[str, Floats]) -> dict[str, list[str]]:
    return {
        method: [features[i] for i in np.argsort(-values)[:2]] for method, values in means.items()
    }


def _sentence(tops: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    agreed = {
        part: len({frozenset(top) for top in by_method.values()}) == 1
        for part, by_method in tops.items()
    }
    first = {part: len({top[0] for top in each.values()}) == 1 for part, each in tops.items()}
    if all(agreed.values()):
        return "Equal: all three methods have the same two features first in both parts."
    return (
        "Not equal in "
        + " and ".join(part for part in PARTS if not agreed[part])
        + ": the methods differ in their first two features"
        + (", but all have the same first one" if all(first.values()) else "")
        + ". MDI sees how the tree's splits were chosen, iPFI and iSAGE what its answers rest on; "
        "so a feature of early splits keeps its MDI."
    )


def _table(features: Sequence[str], means: Mapping[str, Mapping[str, Floats]]) -> str:
    head = ["feature", *[f"{method}, {part}" for part in PARTS for method in METHODS]]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    columns = [means[part][method] for part in PARTS for method in METHODS]
    ranks = [np.argsort(np.argsort(-column)) + 1 for column in columns]
    for i, feature in enumerate(features):
        cells = [f"{r[i]} ({c[i]:.4f})" for r, c in zip(ranks, columns, strict=True)]
        lines.append(f"| {feature} | " + " | ".join(cells) + " |")
    return "Rank (mean value):\n\n" + "\n".join(lines)


def _draw(result: Mapping[str, Any], figure: Figure) -> None:
    figure.set_size_inches(10, 3.5)
    for axes, method in zip(figure.subplots(1, len(METHODS)), METHODS, strict=True):
        values = np.array(result[method])
        records = EVERY * np.arange(1, len(values) + 1)
        for i, feature in enumerate(result["features"]):
            axes.plot(records, values[:, i], label=feature, linewidth=1)
        axes.axvline(CONSTANT_UNTIL, color="0.6", linestyle=":")
        axes.set(title=method, xlabel="record")
    figure.axes[-1].legend(fontsize="small")


EXPERIMENT = Elec2()
