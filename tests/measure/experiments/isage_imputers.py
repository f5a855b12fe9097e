"""iSAGE, Figure 4: interventional and observational iSAGE of commission, which salary tells.

In the Agrawal data ``commission`` is 0 where ``salary`` is at least 75,000, and elsewhere uniform,
whatever the rest; function 2 (River's 1) uses salary and age only. A forest learns and is
explained. The paper says neither its size nor the length of the stream, and shows the values of one
run; the authors' script ``conditional_vs_marginal.py`` has 25 trees, 10,000 records and m = 1. Here
are ten trees, which take less time, and reservoirs of 100.

The paper finds no significant importance of commission for observational iSAGE, since salary tells
it. That is true of what commission adds to *all* other features, which is conditional iPFI. The
Shapley value is also about the orders in which commission comes before salary, and there it tells
on which side of 75,000 the salary is. So the value by draws of salary and commission given each
other stands beside the estimates, of the forest as it is at the end. All other features are drawn
from their marginal distribution, although hvalue depends on zipcode.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from river import forest

from deploy.docs.words import table
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.sage import DEFAULT_INNER_SAMPLES
from tests.kit.support import agrawal
from tests.measure.experiments.experiment import Report, Results, seeded
from tests.measure.experiments.forests import (
    Forests,
    Places,
    array_sage,
    as_arrays,
    random_draws,
    revealed,
)

CONCEPT = 1
ALPHA = 0.001
DEFAULT = DEFAULT_INNER_SAMPLES
SAMPLES = (1, DEFAULT)
IMPUTERS = ("interventional", "observational")
FEATURE, TOLD_BY = "commission", "salary"
NO_COMMISSION_FROM = 75_000.0
COMMISSION = (10_000.0, 75_000.0)
TRUE_SAMPLES = 20
TRUE = "observational iSAGE, salary and commission drawn given each other"
TARGETS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "interventional": ("> 5", lambda ratios: ratios > 5.0),
    "observational": ("≤ 2", lambda ratios: np.abs(ratios) <= 2.0),
}
"""Imputer → its target, in standard errors, and whether it is reached."""

Estimate = tuple[float, float]
"""Importance of commission, and its standard error."""


def run(*, seed: int, trees: int, length: int, true_records: int) -> dict[str, Estimate]:
    """Return the importance of commission at the end of the stream, and its standard error.

    That of the value by draws given each other is of ``true_records`` records.
    """
    model = forest.ARFClassifier(n_models=trees, seed=seed)
    records = agrawal(length, seed, CONCEPT)
    features = list(records[0][0])
    options: dict[str, Any] = {"loss": "cross_entropy", "alpha": ALPHA, "seed": seed}
    explainers = {
        f"{imputer} iSAGE, m = {m}": IncrementalSAGE(
            model, features, imputer=imputer, inner_samples=m, **options
        )
        for m in SAMPLES
        for imputer in IMPUTERS
    } | {
        f"{imputer} iPFI": IncrementalPFI(model, features, imputer=imputer, **options)
        for imputer in IMPUTERS
    }
    for x, y in records:
        explain_together(list(explainers.values()), x, y)
        model.learn_one(x, y)
    estimates = {
        name: (each.values[FEATURE], each.std_errors[FEATURE]) for name, each in explainers.items()
    }
    return {**estimates, TRUE: true_value(Forests([model]), seed, true_records)}


def true_value(forests: Forests, seed: int, n: int) -> Estimate:
    """Return the observational SAGE value of commission, by draws given what is revealed.

    All other features but salary are drawn from whole observations.
    """
    # a seed that no other stream has
    records = agrawal(n, 10**6 + seed, CONCEPT)
    features, xs, ys = as_arrays(records)
    rng = np.random.default_rng(seed)
    orders, chosen = random_draws(rng, len(xs), len(features), TRUE_SAMPLES)
    hidden = conditional(features, xs, orders, chosen, rng)
    increments = array_sage(partial(forests.probabilities, features), xs, ys, orders, hidden)
    of_feature = increments[:, features.index(FEATURE)]
    return float(of_feature.mean()), float(of_feature.std() / np.sqrt(len(xs)))


def conditional(
    features: Sequence[str], xs: Floats, orders: Places, chosen: Places, rng: np.random.Generator
) -> Floats:
    """Return draws that go with what is revealed, of salary and commission: ``hidden``."""
    salary, commission = features.index(TOLD_BY), features.index(FEATURE)
    known = revealed(orders)
    steps = known.shape[1]
    hidden = np.repeat(xs[chosen][:, None], steps, axis=1)
    without = xs[:, salary] >= NO_COMMISSION_FROM
    sides = {side: np.flatnonzero(without == side) for side in (False, True)}
    same_side = np.array([rng.choice(sides[side], chosen.shape[1]) for side in without.tolist()])
    told = known[:, :, commission] & ~known[:, :, salary]
    hidden[:, :, :, salary] = np.where(
        told[:, :, None], xs[same_side, salary][:, None], hidden[:, :, :, salary]
    )
    paid = np.where(without[:, None], 0.0, rng.uniform(*COMMISSION, chosen.shape))
    tells = known[:, :, salary] & ~known[:, :, commission]
    hidden[:, :, :, commission] = np.where(
        tells[:, :, None], paid[:, None], hidden[:, :, :, commission]
    )
    return hidden


def report(results: Results) -> Report:
    names = list(next(iter(results.values())))
    estimates = {name: np.array([each[name] for each in results.values()]) for name in names}
    return Report(_table(estimates), _sentence(estimates), partial(_draw, estimates))


def _paper(name: str) -> str:
    if name == TRUE or "iPFI" in name:
        return "–"
    return "above 0" if name.startswith("interventional") else "not significant"


def _ratios(estimates: Floats) -> Floats:
    """Return importances in standard errors."""
    ratios: Floats = estimates[:, 0] / estimates[:, 1]
    return ratios


def _ratio(estimates: Floats) -> str:
    return f"{np.median(_ratios(estimates)):.1f}"


def _table(estimates: Mapping[str, Floats]) -> str:
    head = ["commission", "ours: mean (± between runs)", "its standard error"]
    head += ["in standard errors (median)", "target", "runs that reach it", "paper"]
    rows = []
    for name, each in estimates.items():
        mean, error = each.mean(axis=0)
        target, reaches = TARGETS[name.split()[0]]
        rows.append(
            [
                name,
                f"{mean:.4f} (± {each[:, 0].std():.4f})",
                f"{error:.4f}",
                _ratio(each),
                target,
                f"{reaches(_ratios(each)).sum()} of {len(each)}",
                _paper(name),
            ]
        )
    return table(head, rows)


def _sentence(estimates: Mapping[str, Floats]) -> str:
    verdicts = []
    for imputer, (target, reaches) in TARGETS.items():
        each = estimates[f"{imputer} iSAGE, m = {DEFAULT}"]
        reached = "reaches" if reaches(np.median(_ratios(each))) else "misses"
        verdicts.append(
            f"{imputer} iSAGE {reached} the target of {target} standard errors "
            f"(median {_ratio(each)}, m = {DEFAULT})"
        )
    given_all, true = estimates["observational iPFI"], estimates[TRUE]
    obs = estimates[f"observational iSAGE, m = {DEFAULT}"][:, 0].mean()
    return (
        f"{verdicts[0]}; {verdicts[1]}. What commission adds to all other features, observational "
        f"iPFI, is within 2 standard errors of 0 in "
        f"{TARGETS['observational'][1](_ratios(given_all)).sum()} of {len(given_all)} runs. The "
        "Shapley value is also about the orders in which commission comes before salary, and there "
        "it tells on which side of 75,000 the salary is: with salary and commission drawn given "
        f"each other it is {true[:, 0].mean():.4f} (median {_ratio(true)} standard errors), and "
        f"observational iSAGE's is {obs:.4f}."
    )


def _draw(estimates: Mapping[str, Floats], figure: Figure) -> None:
    figure.set_size_inches(8, 4)
    axes = figure.subplots()
    for i, each in enumerate(estimates.values()):
        spread = (np.arange(len(each)) - len(each) / 2.0) * 0.04
        axes.errorbar(each[:, 0], i + spread, xerr=2.0 * each[:, 1], fmt=".", linewidth=1)
    axes.axvline(0.0, color="0.6", linestyle=":")
    axes.set_yticks(range(len(estimates)), list(estimates))
    axes.invert_yaxis()
    axes.set_xlabel("importance of commission, ± 2 standard errors, each run")


RUNS = 10

tasks = seeded(run, trees=10, length=10_000, true_records=4_000)
