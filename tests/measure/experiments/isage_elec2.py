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
import pandas as pd
from matplotlib.figure import Figure
from river import tree

from deploy.docs.words import table
from fluxplain.baselines import mean_decrease_in_impurity
from fluxplain.explain import IncrementalPFI, IncrementalSAGE, explain_together
from tests.measure.experiments.experiment import Report, Results, seeded
from tests.measure.experiments.streams import VICPRICE_VARIES, elec2

METHODS = ("iSAGE", "iPFI", "MDI")
EVERY = 250
"""Records from one value that is kept to the next."""

SETTLED = 1000
"""Records that are left out: the smoothing's window, and the tree's first splits."""

PARTS = {
    "before vicprice varies": slice(SETTLED // EVERY, VICPRICE_VARIES // EVERY),
    "after": slice(VICPRICE_VARIES // EVERY, None),
}
"""The kept values of each part."""


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
    means = pd.DataFrame(
        {
            f"{method}, {part}": np.mean(
                [np.mean(r[method][rows], axis=0) for r in results.values()], 0
            )
            for part, rows in PARTS.items()
            for method in METHODS
        },
        index=first["features"],
    )
    ranks = means.apply(lambda values: np.argsort(np.argsort(-values.to_numpy())) + 1).astype(str)
    cells = ranks + means.map(" ({:.4f})".format)
    rows = [[feature, *row] for feature, row in zip(means.index, cells.to_numpy(), strict=True)]
    text = f"Rank (mean value):\n\n{table(['feature', *means], rows)}"
    return Report(text, _sentence(means), partial(_draw, first))


def _sentence(means: Any) -> str:
    said = []
    for part in PARTS:
        tops = [means[f"{method}, {part}"].nlargest(2).index for method in METHODS]
        both = len(set(map(frozenset, tops))) == 1
        first = len({top[0] for top in tops}) == 1
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
