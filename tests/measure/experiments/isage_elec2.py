"""iSAGE, Figure 11: iSAGE, iPFI and MDI of a Hoeffding adaptive tree on elec2.

The paper has a picture, of which it says that all three methods find the two most important
features. A method's value of a feature is averaged over the records before ``vicprice`` varies, and
over those after. What the paper leaves open: cross-entropy, α = 0.001, reservoirs of 100, and all
of each as inner samples. The picture is of the first run.
"""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from river import tree

from deploy.docs.words import table
from fluxplain.baselines import mean_decrease_in_impurity
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI, IncrementalSAGE, explain_together
from tests.measure.experiments.experiment import Report, Results, seeded
from tests.measure.experiments.streams import VICPRICE_VARIES, elec2

METHODS = ("iSAGE", "iPFI", "MDI")
PARTS = ("before vicprice varies", "after")
EVERY = 250
"""Records from one value that is kept to the next."""

SETTLED = 1000
"""Records that are left out: the smoothing's window, and the tree's first splits."""


def run(*, seed: int, length: int, alpha: float, reservoir_size: int) -> dict[str, Any]:
    """Return each method's values of the features, every 250 records."""
    records = elec2()
    features = list(records[0][0])
    model = tree.HoeffdingAdaptiveTreeClassifier(seed=seed)
    options: dict[str, Any] = {
        "loss": "cross_entropy",
        "alpha": alpha,
        "reservoir_size": reservoir_size,
        "inner_samples": "all",
        "seed": seed,
    }
    explainers = [kind(model, features, **options) for kind in (IncrementalSAGE, IncrementalPFI)]
    values: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for t, (x, y) in enumerate(islice(records, length), start=1):
        importances = explain_together(explainers, x, y)
        model.learn_one(x, y)
        if t % EVERY == 0:
            importances.append(mean_decrease_in_impurity(model, features))
            for method, each in zip(METHODS, importances, strict=True):
                values[method].append([round(value, 5) for value in each.values()])
    return {"features": features, **values}


def report(results: Results) -> Report:
    first = next(iter(results.values()))
    features = first["features"]
    means = {part: {method: _mean(results, method, part) for method in METHODS} for part in PARTS}
    tops = {
        part: {
            method: [features[i] for i in np.argsort(-values)[:2]]
            for method, values in by_method.items()
        }
        for part, by_method in means.items()
    }
    columns = [means[part][method] for part in PARTS for method in METHODS]
    ranked = [(np.argsort(np.argsort(-column)) + 1, column) for column in columns]
    rows = [
        [feature, *(f"{ranks[i]} ({values[i]:.4f})" for ranks, values in ranked)]
        for i, feature in enumerate(features)
    ]
    head = ["feature", *[f"{method}, {part}" for part in PARTS for method in METHODS]]
    text = f"Rank (mean value):\n\n{table(head, rows)}"
    return Report(text, _sentence(tops), partial(_draw, first))


def _mean(results: Mapping[str, Any], method: str, part: str) -> Floats:
    begin, end = (SETTLED, VICPRICE_VARIES) if part == PARTS[0] else (VICPRICE_VARIES, None)
    rows = slice(begin // EVERY, end and end // EVERY)
    values: Floats = np.mean(
        [np.mean(each[method][rows], axis=0) for each in results.values()], axis=0
    )
    return values


def _sentence(tops: Mapping[str, Mapping[str, list[str]]]) -> str:
    said = []
    for part, by_method in tops.items():
        both = len({frozenset(top) for top in by_method.values()}) == 1
        first = len({top[0] for top in by_method.values()}) == 1
        said.append(
            f"{part} the methods {'agree' if both else 'differ'} in the first two features"
            + ("" if both else f", and {'agree' if first else 'differ'} in the first one")
        )
    return (
        f"{'Worse' if any('differ' in each for each in said) else 'Equal'}: {'; '.join(said)}. "
        "MDI is about how the tree's splits were chosen, iPFI and iSAGE about what its answers "
        "rest on."
    )


def _draw(result: Mapping[str, Any], figure: Figure) -> None:
    figure.set_size_inches(10, 3.5)
    for axes, method in zip(figure.subplots(1, len(METHODS)), METHODS, strict=True):
        values = np.array(result[method])
        records = EVERY * np.arange(1, len(values) + 1)
        for i, feature in enumerate(result["features"]):
            axes.plot(records, values[:, i], label=feature, linewidth=1)
        axes.axvline(VICPRICE_VARIES, color="0.6", linestyle=":")
        axes.set(title=method, xlabel="record")
    figure.axes[-1].legend(fontsize="small")


RUNS = 1

tasks = seeded(run, length=45_312, alpha=0.001, reservoir_size=100)
