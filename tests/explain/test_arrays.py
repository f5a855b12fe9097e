"""What is computed in arrays is what is computed one by one, bit for bit."""

import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import forest, linear_model, preprocessing

from pipeline.evaluate import Label, Observation, Output, Value, evaluator_for
from pipeline.evaluate.table import Table
from pipeline.explain import (
    LOSSES,
    IncrementalPairPDP,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    explain_together,
    kernels,
)
from pipeline.explain.curve import table_of
from pipeline.explain.losses import compiled_loss
from pipeline.explain.outputs import mean_output
from pipeline.explain.players import Players
from pipeline.explain.ranks import RankCurve, RankCurves
from pipeline.explain.sampling.permutation import permuted
from pipeline.explain.smoothing import ExponentialMean, ExponentialMeans, OutputMean
from pipeline.explain.storage import FrequencyStorage, FrequencyStorages
from tests.support import NUMBERS, PROPERTY, Row, Scripted, agrawal, pickled

ALPHAS = st.floats(1e-3, 1.0)
SHARES = st.floats(0.0, 1.0)
LABELS: tuple[Label, ...] = ("a", "b", "c")
ROWS = st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=12)


class Called:
    """An evaluator that has dictionaries only."""

    def __init__(self, model: object) -> None:
        self._evaluator = evaluator_for(model)

    def __call__(
        self, x: Observation, replacements: Sequence[Mapping[str, Value]]
    ) -> Sequence[Output]:
        return self._evaluator(x, replacements)


MODELS: dict[str, tuple[Callable[[], Any], str, Callable[[Row, int], Any]]] = {
    "logistic": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "cross_entropy",
        lambda x, y: bool(y),
    ),
    "logistic-number": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "zero_one",
        lambda x, y: y,
    ),
    "linear": (
        lambda: preprocessing.StandardScaler(with_std=False) | linear_model.LinearRegression(),
        "squared_error",
        lambda x, y: float(x["age"]) + y,
    ),
    "forest": (
        lambda: forest.ARFClassifier(n_models=3, seed=1),
        "brier",
        lambda x, y: f"class {y + (int(x['age']) > 50)}",
    ),
}


def explainers(model: Any, features: list[Any], loss: Any, evaluator: Any) -> list[Any]:
    options: dict[str, Any] = {"loss": loss, "alpha": 0.05, "inner_samples": 2, "seed": 1}
    names = Players(features).features
    return [
        IncrementalPFI(model, features, reservoir_size=20, evaluator=evaluator, **options),
        IncrementalSAGE(model, features, reservoir_size=15, evaluator=evaluator, **options),
        *[
            kind(
                model, features, imputer=imputer, reservoir_size=15, evaluator=evaluator, **options
            )
            for kind in (IncrementalPFI, IncrementalSAGE)
            for imputer in ("product", "observational")
        ],
        IncrementalPDP(
            model,
            names,
            storage_size=20,
            entrance_probability=0.7,
            warm_up=5,
            ice=3,
            seed=1,
            evaluator=evaluator,
        ),
        IncrementalPDP(
            model, names, grid="range", window=30, storage_size=20, ice=2, evaluator=evaluator
        ),
        IncrementalPairPDP(
            model,
            [(names[0], names[1]), (names[2], names[0])],
            grid_size=3,
            storage_size=20,
            evaluator=evaluator,
        ),
    ]


def restored(explainer: Any, evaluator: Any) -> Any:
    """Return it out of a pickle, asking the model that goes on."""
    copy = pickled(explainer)
    copy.evaluator = evaluator
    return copy


def state(explainer: Any) -> list[Any]:
    """Everything that a user can read."""
    names = (
        "values",
        "variances",
        "std_errors",
        "increments",
        "curves",
        "ice",
        "surfaces",
        "mean_prediction",
    )
    return [getattr(explainer, name, None) for name in names]


@pytest.mark.parametrize(
    "features",
    [
        ["salary", "age", "loan"],
        None,
        ["loan", {"house": ["zipcode", "hvalue", "hyears"], "person": ["elevel", "age"]}, "car"],
    ],
    ids=["some", "all", "groups"],
)
@pytest.mark.parametrize("name", MODELS)
def test_an_evaluator_with_arrays_gives_what_it_gives_when_called(
    name: str, features: list[Any] | None
) -> None:
    factory, loss, target = MODELS[name]
    model = factory()
    asked = features or list(agrawal(1)[0][0])
    arrays = explainers(model, asked, loss, "auto")
    called = explainers(model, asked, loss, Called(model))
    own = explainers(model, asked, functools.partial(LOSSES[loss]), "auto")
    for i, (raw, y) in enumerate(agrawal(150)):
        x = {feature: float(v) / 1e5 if float(v) > 1000 else v for feature, v in raw.items()}
        if i % 10 == 9:
            x = dict(reversed(x.items()))
        label = target(x, y)
        estimates = [explain_together(each, x, label) for each in (arrays, called, own)]
        assert estimates[0] == estimates[1] == estimates[2]
        if i % 50 == 20:
            evaluator = arrays[0].evaluator
            arrays = [restored(each, evaluator) for each in arrays]
        model.learn_one(x, label)
    for one, two, three in zip(arrays, called, own, strict=True):
        assert state(one) == state(two) == state(three)


@PROPERTY
@given(ROWS, st.sampled_from(["a", "c", "d"]), st.sampled_from(sorted(LOSSES)), NUMBERS)
def test_a_compiled_loss_is_the_function(
    rows: list[tuple[float, ...]], y: str, name: str, target: float
) -> None:
    loss = LOSSES[name]
    for label, table in (
        (y, Table(LABELS, np.array(rows))),
        (target, Table((None,), np.array(rows)[:, :1])),
    ):
        how = compiled_loss(loss, label, table.labels)
        if how is not None:
            given = kernels.losses(*how, 2.0, table.numbers).tolist()
            assert given == [loss(label, output) for output in table.outputs()]


@PROPERTY
@given(ROWS, st.integers(1, 4))
def test_restricted_outputs_are_the_means_of_the_draws(
    rows: list[tuple[float, ...]], m: int
) -> None:
    numbers = np.array(rows * m)[: 1 + m * ((len(rows) * m - 1) // m)]
    outputs = Table(LABELS, numbers).outputs()
    means = [mean_output(outputs[i : i + m]) for i in range(1, len(outputs), m)]
    given = Table(LABELS, kernels.restricted(np.zeros(3), numbers, m)).outputs()
    assert given == [dict.fromkeys(LABELS, 0.0), *means, outputs[0]]


@PROPERTY
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30), ALPHAS, st.booleans())
def test_means_that_move_together_are_each_mean(
    values: list[tuple[float, float]], alpha: float, debias: bool
) -> None:
    together = ExponentialMeans(2, alpha, debias=debias)
    alone = [ExponentialMean(alpha, debias=debias) for _ in range(2)]
    for pair in values:
        together.update(np.array(pair))
        for mean, v in zip(alone, pair, strict=True):
            mean.update(v)
    assert together.values.tolist() == [mean.value for mean in alone]
    assert together.variances.tolist() == [mean.variance for mean in alone]
    assert together.std_errors == [mean.std_error for mean in alone]


@PROPERTY
@given(ROWS, ALPHAS, st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_mean_of_arrays_is_the_mean_of_outputs(
    rows: list[tuple[float, ...]], alpha: float, as_array: list[bool]
) -> None:
    outputs, arrays = OutputMean(alpha), OutputMean(alpha)
    for row, is_array in zip(rows, as_array, strict=False):
        output: Output = dict(zip(LABELS, row, strict=True))
        outputs.update(output)
        moved = arrays.advance(LABELS) if is_array else None
        if moved:
            mean, weight = moved
            mean += weight * (np.array(row) - mean)
        else:
            arrays.update(output)
        assert arrays.value == outputs.value
    assert arrays.advance(("a", "b")) is None
    assert pickled(arrays).value == outputs.value


@PROPERTY
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_storages_of_several_features_are_each_storage(
    values: list[tuple[float, float]], size: int, seed: int
) -> None:
    together = FrequencyStorages(2, size)
    alone = [FrequencyStorage(size, random.Random(seed + i), 0.6) for i in range(2)]
    draws = [random.Random(seed + i) for i in range(2)]
    for pair in values:
        together.update(np.array(pair), np.array([rng.random() < 0.6 for rng in draws]))
        for storage, v in zip(alone, pair, strict=True):
            storage.update(v)
        holding = [i for i, storage in enumerate(alone) if len(storage) >= 2]
        assert together.holding(2).tolist() == holding
        grids = together.grids(4)
        for i in holding:
            low, high = alone[i].quantile(0.05), alone[i].quantile(0.95)
            step = (high - low) / 3
            assert grids[i].tolist() == [low + k * step for k in range(4)]


def importance_and_slopes(curve: list[float]) -> tuple[float, list[float]]:
    """Greenwell's importance and its derivatives, one operation a line."""
    shifted = [v - curve[0] for v in curve]
    mean = sum(shifted) / len(curve)
    deviations = [v - mean for v in shifted]
    importance = math.sqrt(sum([v * v for v in deviations]) / (len(curve) - 1))
    scale = importance * (len(curve) - 1)
    return importance, [v / scale if scale else 0.0 for v in deviations]


@PROPERTY
@given(
    st.lists(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=4, max_size=4), min_size=1, max_size=9),
    ALPHAS,
    st.booleans(),
)
def test_a_curve_of_numbers_moves_as_its_definition_says(
    ices: list[list[tuple[float, float]]], alpha: float, debias: bool
) -> None:
    """iPDP, Algorithm 1, with the delta method; in the order of these operations."""
    curve = RankCurve(alpha, debias=debias)
    projections = ExponentialMean(alpha)
    weight, grid, effect = 0.0, [0.0] * 4, [0.0] * 4
    for ice in ices:
        points, outputs = [p for p, _ in ice], [v for _, v in ice]
        increment = curve.update([*points], [*outputs])
        weight = (1.0 - alpha) * weight + alpha
        w = alpha / weight if debias else alpha
        grid = [m + w * (v - m) for m, v in zip(grid, points, strict=True)]
        effect = [m + w * (v - m) for m, v in zip(effect, outputs, strict=True)]
        importance, slopes = importance_and_slopes(effect)
        projections.update(sum([s * v for s, v in zip(slopes, outputs, strict=True)]))
        assert increment == importance_and_slopes(outputs)[0]
        assert (curve.grid, curve.effect, curve.value) == (grid, effect, importance)
        assert (curve.variance, curve.std_error) == (projections.variance, projections.std_error)


@PROPERTY
@given(
    st.lists(
        st.tuples(
            st.lists(st.dictionaries(st.sampled_from(LABELS), SHARES), min_size=6, max_size=6),
            st.sampled_from([(0, 1), (0,), (1,)]),
        ),
        min_size=1,
        max_size=9,
    ),
    ALPHAS,
)
def test_curves_that_move_together_are_each_curve(
    moves: list[tuple[list[dict[Label, float]], tuple[int, ...]]], alpha: float
) -> None:
    """Classes may come later, and to one curve only."""
    together = RankCurves(2, alpha)
    alone = [RankCurve(alpha), RankCurve(alpha)]
    for outputs, which in moves:
        tables = [table_of(outputs[:3]), table_of(outputs[3:])]
        if tables[0].labels == tables[1].labels and len(which) == 2:
            both = np.concatenate([table.numbers for table in tables])
            points = np.array([[0.0, 1.0, 2.0]] * 2)
            together.move(np.array(which, np.intp), points, Table(tables[0].labels, both))
        else:
            for i in which:
                one = np.array([i], np.intp)
                together.move(one, np.array([[0.0, 1.0, 2.0]]), tables[i])
        for i in which:
            alone[i].update([0.0, 1.0, 2.0], [*outputs[3 * i : 3 * i + 3]])
            assert together.increments[i] == alone[i]._curves.increments[0]
    for i, curve in enumerate(alone):
        assert together.n[i] == curve.n
        assert together.grid(i) == curve.grid
        assert together.effect(i) == curve.effect
        assert together.values[i] == curve.value
        assert together.std_errors[i] == curve.std_error


@PROPERTY
@given(st.integers(1, 80), st.integers(0, 999))
def test_a_permutation_is_the_sample_of_all(n: int, seed: int) -> None:
    one, other = random.Random(seed), random.Random(seed)
    assert permuted(n, one) == other.sample(range(n), n)
    assert one.getstate() == other.getstate()


@pytest.mark.parametrize("value", ["text", 10**400, np.int64(3)], ids=["text", "large", "NumPy's"])
def test_what_is_no_number_goes_the_way_of_dictionaries(value: Any) -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    explainer = IncrementalPFI(model, ["a"], reservoir_size=3, seed=1)
    for i in range(5):
        x: Row = {"a": float(i)}
        model.learn_one(x, True)
        explainer.explain_one(x, True)
    try:
        model.predict_proba_one({"a": value})
    except Exception as error:
        with pytest.raises(type(error)):
            explainer.explain_one({"a": value}, True)
    else:
        assert explainer.explain_one({"a": value}, True)["a"] != 0.0


@pytest.mark.parametrize("n", [1, 5])
def test_an_evaluator_that_gives_too_few_or_too_many_outputs_is_named(n: int) -> None:
    explainer = IncrementalPFI(
        Scripted(lambda x: 0.0),
        ["a"],
        loss="squared_error",
        reservoir_size=1,
        evaluator=lambda x, replacements: [0.0] * n,
    )
    explainer.explain_one({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match=f"gave {n} outputs on 2 inputs"):
        explainer.explain_one({"a": 1.0}, 1.0)
