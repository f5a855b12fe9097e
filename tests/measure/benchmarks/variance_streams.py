"""Five streams with frozen models, two concepts each, for the errors of explanations.

Each record has the label of both concepts, and each concept a model that is trained on it and then
learns nothing more. So what is true of an explanation is known, or can be computed from many
records.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from river import forest, linear_model, preprocessing, tree

from fluxplain.baselines import batch_pdp
from fluxplain.evaluate import Evaluator, evaluator_for
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from fluxplain.explain.curve import Effect, Grid
from fluxplain.explain.parameter_checks import ALL
from fluxplain.forest import as_arrays
from tests.kit.support import agrawal
from tests.measure.coverage.streams import WEIGHTS, linear, records, truths
from tests.measure.experiments.streams import elec2

Values = Mapping[str, float]
Draw = Callable[[int, int], list[tuple[dict[str, Any], tuple[Any, Any]]]]
"""Number of records and seed → observations, each with its label in both concepts."""

TRAINED = 5000
TRAINING_SEED, REFERENCE_SEED = 1_000_001, 1_000_002
REFERENCE = 20_000
"""Records of a long run; its own error is small beside that of 3,000 records."""

CURVE_RECORDS = 2000
POINTS = 41
"""At which two curves are compared, from the 5 % quantile of a feature to its 95 % quantile."""

CONCEPTS = (0, 1)
FINEST = 1e-6
"""Smoothing rate with which an estimate is the plain mean over all records."""


@dataclass
class Stream:
    """A stream, and what is true of the explanations of its models.

    ``exact`` are method → values of each concept, if formulas give them.
    """

    name: str
    loss: str
    draw: Draw
    models: Sequence[Any]
    exact: Sequence[Mapping[str, Values]] = ()
    reference: int = REFERENCE
    evaluators: list[Evaluator] = field(init=False)

    def __post_init__(self) -> None:
        self.evaluators = [evaluator_for(model) for model in self.models]
        self.features = [*self.draw(1, 1)[0][0]]

    def truth(self, method: str, concept: int) -> Values:
        """Return the true values of iPFI or iSAGE, to which no error of few records belongs."""
        if self.exact:
            return self.exact[concept][method]
        return self._long_run(method, concept)

    def _long_run(self, method: str, concept: int) -> Values:
        kind = {"ipfi": IncrementalPFI, "isage": IncrementalSAGE}[method]
        explainer = kind(
            None,
            self.features,
            loss=self.loss,
            alpha=FINEST,
            inner_samples=ALL,
            seed=1,
            evaluator=self.evaluators[concept],
        )
        for x, ys in self.draw(self.reference, REFERENCE_SEED):
            explainer.explain_one(x, ys[concept])
        values: Values = explainer.values
        return values

    def curves(self) -> dict[str, tuple[Floats, Floats]]:
        """Return feature → points and the true effect there, of the first concept."""
        xs = [x for x, _ in self.draw(self.reference, REFERENCE_SEED)]
        grids = {}
        for feature in self.features:
            low, high = np.quantile([x[feature] for x in xs], (0.05, 0.95))
            grids[feature] = np.linspace(low, high, POINTS).tolist()
        few = random.Random(1).sample(xs, min(CURVE_RECORDS, len(xs)))
        found = batch_pdp(None, few, self.features, grids=grids, evaluator=self.evaluators[0])
        return {f: (np.array(grids[f]), np.array(found[f].effect)) for f in self.features}


def linear_stream(name: str, of: str) -> Stream:
    """Return a stream of Gaussian features; the second model has the weights in reverse."""
    weights = [WEIGHTS, dict(zip(WEIGHTS, [*WEIGHTS.values()][::-1], strict=True))]
    models = [linear(each) for each in weights]

    def draw(n: int, seed: int) -> list[tuple[dict[str, Any], tuple[Any, Any]]]:
        both = [model.predict_one for model in models]
        return [(x, (y, y - both[0](x) + both[1](x))) for x, y in records(of, n, seed)]

    return Stream(name, "squared_error", draw, models, [truths(of, each) for each in weights])


def forest_stream() -> Stream:
    """Return agrawal's first two concepts, each with a forest of ten trees."""

    def draw(n: int, seed: int) -> list[tuple[dict[str, Any], tuple[Any, Any]]]:
        pairs = zip(agrawal(n, seed, 1), agrawal(n, seed, 2), strict=True)
        return [(x, (y, other)) for (x, y), (_, other) in pairs]

    return _trained(
        "agrawal, ARF-10",
        "cross_entropy",
        draw,
        lambda: as_arrays(forest.ARFClassifier(n_models=10, seed=1)),
    )


def logistic_stream() -> Stream:
    """Return elec2 with its records drawn at random: the price, then the demand, above median."""
    rows = _elec2()
    middle = float(np.median([x["nswdemand"] for x, _ in rows]))

    def draw(n: int, seed: int) -> list[tuple[dict[str, Any], tuple[Any, Any]]]:
        chosen = random.Random(seed).choices(rows, k=n)
        return [(x, (bool(y), x["nswdemand"] > middle)) for x, y in chosen]

    return _trained(
        "elec2 drawn at random, logistic regression",
        "cross_entropy",
        draw,
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    )


@cache
def _elec2() -> list[Any]:
    return elec2()


def tree_stream() -> Stream:
    """Return Friedman's function, then that with the features in reverse, each with one tree."""

    def draw(n: int, seed: int) -> list[tuple[dict[str, Any], tuple[Any, Any]]]:
        rng = np.random.default_rng(seed)
        rows, noise = rng.random((n, 10)), rng.normal(size=n)
        both = zip(_friedman(rows) + noise, _friedman(rows[:, ::-1]) + noise, strict=True)
        names = [f"x{i}" for i in range(10)]
        xs = [dict(zip(names, row, strict=True)) for row in rows.tolist()]
        return [(x, (float(y), float(other))) for x, (y, other) in zip(xs, both, strict=True)]

    return _trained(
        "Friedman, tree",
        "squared_error",
        draw,
        lambda: as_arrays(tree.HoeffdingTreeRegressor()),
    )


def _friedman(x: Floats) -> Floats:
    """Return Friedman's function of the first five columns."""
    first: Floats = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2
    return first + 10.0 * x[:, 3] + 5.0 * x[:, 4]


def _trained(name: str, loss: str, draw: Draw, make: Callable[[], Any]) -> Stream:
    """Return a stream with a model for each concept, trained on records of their own."""
    models = [make() for _ in CONCEPTS]
    for x, ys in draw(TRAINED, TRAINING_SEED):
        for model, y in zip(models, ys, strict=True):
            model.learn_one(x, y)
    return Stream(name, loss, draw, models)


STREAMS: Mapping[str, Callable[[], Stream]] = {
    "independent": lambda: linear_stream("Gaussian, linear model", "independent"),
    "autocorrelated": lambda: linear_stream("Gaussian, AR .9, linear model", "AR .9"),
    "agrawal": forest_stream,
    "elec2": logistic_stream,
    "friedman": tree_stream,
}


def relative(values: Values, truth: Values) -> float:
    """Return the mean squared error over the features, in units of the truth's squared total.

    Examples
    --------
    >>> relative({"a": 4.0, "b": 0.0}, {"a": 3.0, "b": 1.0})
    0.0625
    """
    off = [values[feature] - value for feature, value in truth.items()]
    return float(np.mean(np.square(off))) / sum(map(abs, truth.values())) ** 2


def relative_of_curves(
    curves: Mapping[str, tuple[Grid, Effect]],
    truth: Mapping[str, tuple[Floats, Floats]],
) -> float:
    """Return the same of curves: their mean squared distance along the true ones.

    Between its points a curve is a straight line, beyond them constant. The unit is the squared
    sum of the true curves' standard deviations, their importances.
    """
    off = []
    for feature, (points, effect) in truth.items():
        grid, ours = (np.array([*each], float) for each in curves[feature])
        off.append(np.mean((np.interp(points, grid, ours) - effect) ** 2))
    return float(np.mean(off)) / sum(float(effect.std()) for _, effect in truth.values()) ** 2
