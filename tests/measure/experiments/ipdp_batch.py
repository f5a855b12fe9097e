"""iPDP, Section 4.3 and Figure 6: distance of iPDP from the batch PDP for a static network.

The paper's network (50, 100 and 5 neurons) predicts prices of houses in California, which are not
here. Ours predicts the demand of New South Wales from the other columns of elec2. It is trained on
70 % of the records; 5,000 in random order are then explained, with α = 0.01 and 20 points from the
smallest value of these to the largest. The authors' script moves this range with the last 100
values, and explains all records; the batch PDP has the points of iPDP here.

Early stopping may end before the network learns anything. Such a run says nothing about curves,
which are constant up to noise: one with an R² below 0.1 on the test records is left out, and named.

iPDP with α = 0.01 averages over about the last 200 records, the batch PDP over all 5,000. The mean
output over 200 records is another one, by chance, and moves the whole curve up or down. Two further
comparisons tell this from an error of iPDP: each curve's mean is subtracted, so that the shape of
the effect is left; and the batch PDP weighs the records as iPDP does, the last one with α.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deploy.docs.words import table
from fluxplain.baselines import batch_pdp
from fluxplain.evaluate import Inputs, Table
from fluxplain.explain import IncrementalPDP
from tests.measure.experiments.errors import distance_between
from tests.measure.experiments.experiment import Report, Results, seeded
from tests.measure.experiments.streams import elec2, shuffled

TARGET = "nswdemand"
SHOWN = "vicdemand"
TOLERANCE = 0.05
"""Ours for “almost identical”: mean distance of two curves, in the range of the batch's."""
WARM_UP = 100
LEARNED = 0.1
"""R² below which a network is left out."""


def explain(
    *, alphas: list[float], layers: list[int], records: int, explained: int, seed: int
) -> dict[str, Any]:
    """Return the R² of the network, and the curves of both for each feature.

    70 % of all ``records`` are learned; both explain the first ``explained``, so both ask the model
    as often.
    """
    xs = [x for x, _ in shuffled(elec2(), seed)][:records]
    features = [name for name in xs[0] if name != TARGET]
    columns = np.array([[x[name] for name in features] for x in xs])
    labels = np.array([x[TARGET] for x in xs])
    split = train_test_split(columns, labels, test_size=0.3, random_state=seed)
    network = MLPRegressor(hidden_layer_sizes=layers, early_stopping=True, random_state=seed)
    estimator = make_pipeline(StandardScaler(), network).fit(split[0], split[2])
    ask = _evaluator(estimator, features)
    options: dict[str, Any] = {
        "grid": "range",
        "grid_size": 20,
        "window": explained,
        "warm_up": WARM_UP,
        "categorical": [],
        "evaluator": ask,
        "seed": seed,
    }
    pdps = {alpha: IncrementalPDP(None, features, alpha=alpha, **options) for alpha in alphas}
    for x in xs[:explained]:
        for pdp in pdps.values():
            pdp.explain_one(x)
    curves = {}
    for alpha, pdp in pdps.items():
        grids = {feature: grid for feature, (grid, _) in pdp.curves.items()}
        batch = batch_pdp(None, xs[:explained], features, grids=grids, evaluator=ask)
        weights = (1.0 - alpha) ** np.arange(explained - WARM_UP)[::-1]
        curves[str(alpha)] = {
            feature: {
                "grid": grid,
                "ipdp": effect,
                "batch": batch[feature].effect,
                "weighted": np.average(
                    batch[feature].ice[WARM_UP:],  # type: ignore[arg-type]  # all are lists
                    0,
                    weights,
                ).tolist(),
            }
            for feature, (grid, effect) in pdp.curves.items()
        }
    return {"r2": estimator.score(split[1], split[3]), "curves": curves}


def _evaluator(estimator: Any, features: list[str]) -> Any:
    """Return what asks the network about all inputs with one call."""

    def ask(inputs: Inputs) -> Table:
        columns = [inputs.observed.features.index(name) for name in features]
        return Table((None,), estimator.predict(inputs.rows[:, columns])[:, None])

    return ask


class Distance(NamedTuple):
    """Mean distance of both curves, and its share in the batch's range: as they are, centred, and
    from the batch PDP with iPDP's weights."""

    plain: float
    share: float
    centred: float
    weighted: float


def report(results: Results) -> Report:
    learned = {key: result for key, result in results.items() if result["r2"] >= LEARNED}
    shown = learned or results
    first = next(iter(shown.values()))
    alphas = [*first["curves"]]
    each = {
        alpha: {
            feature: [_distance(r["curves"][alpha][feature]) for r in shown.values()]
            for feature in first["curves"][alpha]
        }
        for alpha in alphas
    }
    rows = [
        [feature, *(_cell(each[alpha][feature]) for alpha in alphas)] for feature in each[alphas[0]]
    ]
    what = "mean distance (of the range; centred; with iPDP's weights)"
    head = ["feature", *(f"{what}, α = {alpha}" for alpha in alphas)]
    text = f"{table(head, rows)}\n\n{_networks(results)}"
    return Report(text, _sentence(results, each), partial(_draw, first))


def _cell(distances: Sequence[Distance]) -> str:
    plain, *shares = (mean(numbers) for numbers in zip(*distances, strict=True))
    return f"{plain:.4f} ({'; '.join(f'{share:.1%}' for share in shares)})"


def _networks(results: Results) -> str:
    rows = [
        [key, f"{result['r2']:.3f}", "left out" if result["r2"] < LEARNED else "counts"]
        for key, result in sorted(results.items())
    ]
    return table(["network", "R² (paper's data: 0.806)", f"left out below {LEARNED}"], rows)


def _sentence(results: Results, each: Mapping[str, Mapping[str, Sequence[Distance]]]) -> str:
    paper = next(iter(each))
    of_all = {alpha: [d for of in runs.values() for d in of] for alpha, runs in each.items()}
    total = len(of_all[paper])
    plain, *others = (_close(of_all[paper], of) for of in ("share", "centred", "weighted"))
    dead = [key for key, result in sorted(results.items()) if result["r2"] < LEARNED]
    out = f" Left out is {' and '.join(dead)}, whose network learned nothing." if dead else ""
    worst = {alpha: max(distance.plain for distance in of) for alpha, of in of_all.items()}
    distances = ", ".join(f"{distance:.4f} with α = {alpha}" for alpha, distance in worst.items())
    return (
        f"{'Equal' if plain == total else 'Worse'}: with the paper's α, {plain} of {total} curves "
        f"are on average within {TOLERANCE:.0%} of their range from the batch PDP, ours for the "
        "paper's “almost identical”, which has a picture and no figure. The rest is the level of "
        f"the last records, not an error of the curves: {others[0]} of {total} are within it after "
        f"each curve's mean is subtracted, and {others[1]} of {total} if the batch PDP has iPDP's "
        f"weights.{out} The largest mean distance of any curve is {distances}, in units of the "
        "target, which spans 0 to 1."
    )


def _close(distances: Sequence[Distance], of: str) -> int:
    return sum(getattr(distance, of) <= TOLERANCE for distance in distances)


def _distance(curve: Mapping[str, Any]) -> Distance:
    ipdp, batch = np.array(curve["ipdp"]), np.array(curve["batch"])
    span = max(float(np.ptp(batch)), 1e-12)
    plain = distance_between(ipdp, batch)
    centred = distance_between(ipdp - ipdp.mean(), batch - batch.mean())
    weighted = distance_between(ipdp, curve["weighted"])
    return Distance(plain, plain / span, centred / span, weighted / span)


def _draw(result: Mapping[str, Any], figure: Figure) -> None:
    """Draw both curves of one feature: Figure 6."""
    figure.set_size_inches(4.5, 3)
    axes = figure.subplots()
    alpha, curves = next(iter(result["curves"].items()))
    curve = curves[SHOWN]
    axes.plot(curve["grid"], curve["ipdp"], color="C3", label=f"iPDP, α = {alpha}")
    axes.plot(curve["grid"], curve["batch"], "--", color="C0", label="batch PDP")
    axes.set_xlabel(SHOWN)
    axes.set_ylabel(f"predicted {TARGET}")
    axes.legend(fontsize=8)


RUNS = 5

tasks = seeded(
    explain,
    alphas=[0.01, 0.001],
    layers=[50, 100, 5],
    records=45_312,
    explained=5_000,
)
