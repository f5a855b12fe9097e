"""What is computed in arrays is what is computed one by one, bit for bit."""

import functools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import forest, linear_model, preprocessing

from fluxplain.evaluate import Label
from fluxplain.evaluate.table import Table, table_of
from fluxplain.explain import (
    LOSSES,
    IncrementalPairPDP,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    explain_together,
    kernels,
    loss_kernels,
)
from fluxplain.explain.curve_estimates import contributions
from fluxplain.explain.losses import compiled_loss, losses_on
from fluxplain.explain.players import Players
from fluxplain.explain.randoms import permuted
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.explain.storage import NumberStorage
from tests.explain.kinds import state
from tests.kit.support import NUMBERS, PROPERTY, Row, Scripted, agrawal, pickled

ALPHAS = st.floats(1e-3, 1.0)
SHARES = st.floats(0.0, 1.0)
FIRST = np.zeros(1, np.intp)
LABELS: tuple[Label, ...] = ("a", "b", "c")
ROWS = st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=12)


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


def explainers(
    model: Any, features: list[Any], loss: Any, evaluator: Any, inner_samples: int = 2
) -> list[Any]:
    options: dict[str, Any] = {"loss": loss, "alpha": 0.05, "seed": 1}
    options["inner_samples"] = inner_samples
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


FEATURES: dict[str, list[Any] | None] = {
    "some": ["salary", "age", "loan"],
    "all": None,
    "groups": [
        "loan",
        {"house": ["zipcode", "hvalue", "hyears"], "person": ["elevel", "age"]},
        "car",
    ],
}

QUICK = {"forest-some", "forest-all", "forest-groups", "logistic-all", "linear-groups"}
"""Each model of another evaluator, and each choice of features."""


@pytest.mark.parametrize(
    ("name", "features"),
    [
        pytest.param(name, features, id=case, marks=[] if case in QUICK else pytest.mark.slow)
        for name in MODELS
        for choice, features in FEATURES.items()
        if (case := f"{name}-{choice}")
    ],
)
def test_whatever_evaluator_and_loss_are_taken_the_estimates_are_the_same(
    name: str, features: list[Any] | None
) -> None:
    factory, loss, target = MODELS[name]
    model = factory()
    asked = features or list(agrawal(1)[0][0])
    arrays = explainers(model, asked, loss, "auto")
    called = explainers(model, asked, loss, "generic")
    # of several draws, iSAGE estimates the excess of a loss of one's own in another way
    one_draw = explainers(model, asked, loss, "auto", 1)
    own = explainers(model, asked, functools.partial(LOSSES[loss]), "auto", 1)
    for i, (raw, y) in enumerate(agrawal(80)):
        x = {feature: float(v) / 1e5 if float(v) > 1000 else v for feature, v in raw.items()}
        if i % 10 == 9:
            x = dict(reversed(x.items()))
        label = target(x, y)
        estimates = [explain_together(each, x, label) for each in (arrays, called, one_draw, own)]
        assert estimates[2] == estimates[3]
        for one, two in zip(estimates[0], estimates[1], strict=True):
            assert one == pytest.approx(two, rel=1e-6, abs=1e-9)
        if i % 30 == 20:
            evaluator = arrays[0].evaluator
            arrays = [restored(each, evaluator) for each in arrays]
            one_draw = [restored(each, evaluator) for each in one_draw]
        model.learn_one(x, label)
    for one, two in zip(one_draw, own, strict=True):
        assert state(one) == state(two)


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
        compiled, blocks = compiled_loss(loss, [label], table.labels), table.numbers[None]
        if compiled is not None:
            [given] = loss_kernels.losses(*compiled, blocks).tolist()
            assert given == [loss(label, output) for output in table.outputs()]
            assert [given] == losses_on(loss, [label], table.labels, blocks).tolist()


@PROPERTY
@given(
    ROWS,
    st.integers(1, 4),
    st.permutations([0, 1, 2, 3]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3]),
)
def test_a_player_is_revealed_between_the_means_of_the_draws(
    rows: list[tuple[float, ...]], m: int, order: list[int], n: int, share: float
) -> None:
    """The others of four players are null players."""
    numbers = np.array((rows * 12)[: (n - 1) * m] or np.zeros((0, 3)))
    mean, prediction = np.array([0.2, 0.3, 0.5]), np.array([0.0, 0.0, 1.0])
    places = np.array(order[:n], np.intp)
    blocks = kernels.revealed(mean, prediction, numbers, m, share, places, 4)
    draws = [numbers[i * m : (i + 1) * m] for i in range(n - 1)]
    steps = [mean, *[drawn.mean(axis=0) for drawn in draws], prediction]
    zeros = np.zeros(3)
    sampled = [share * drawn.var(axis=0, ddof=1) if m > 1 else zeros for drawn in draws]
    variances = [zeros, *sampled, zeros]
    for place in range(4):
        k = order[:n].index(place) if place in order[:n] else None
        expected = [prediction, prediction] if k is None else steps[k : k + 2]
        if share:
            expected = [*expected, *([zeros, zeros] if k is None else variances[k : k + 2])]
        assert np.allclose(blocks[place], expected, rtol=0, atol=1e-12)


@PROPERTY
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(0, 99),
    st.booleans(),
)
def test_a_storage_of_several_features_is_one_of_each(
    values: list[tuple[float, float]], size: int, seed: int, by_age: bool
) -> None:

    def storage(*places: int) -> NumberStorage:
        rngs = [random.Random(seed + place) for place in places]
        return NumberStorage(size, rngs, entrance_probability=0.6, by_age=by_age)

    together, alone, levels = storage(0, 1), [storage(0), storage(1)], np.array([0.05, 0.5, 0.95])
    for pair in values:
        together.update(np.array(pair))
        for one, v in zip(alone, pair, strict=True):
            one.update(np.array([v]))
        assert together.counts.tolist() == [one.counts.item() for one in alone]
        quantiles = [one.quantiles(levels)[0].tolist() for one in alone]
        assert together.quantiles(levels).tolist() == quantiles


def added(numbers: list[float]) -> float:
    """Return the sum, one number after the other: from Python 3.12 on, ``sum`` adds otherwise."""
    return functools.reduce(operator.add, numbers, 0.0)


def importance_and_slopes(curve: list[float]) -> tuple[float, list[float]]:
    """Greenwell's importance and its derivatives, one operation a line."""
    shifted = [v - curve[0] for v in curve]
    mean = added(shifted) / len(curve)
    deviations = [v - mean for v in shifted]
    importance = math.sqrt(added([v * v for v in deviations]) / (len(curve) - 1))
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
    curves = RankCurves(1, alpha, debias=debias)
    projections = ExponentialMeans(1, [alpha])
    weight, grid, effect = 0.0, [0.0] * 4, [0.0] * 4
    for ice in ices:
        points, outputs = [p for p, _ in ice], [v for _, v in ice]
        increment = curves.move(FIRST, np.array([points]), table_of([*outputs]))[0].item()
        weight = (1.0 - alpha) * weight + alpha
        w = alpha / weight if debias else alpha
        grid = [m + w * (v - m) for m, v in zip(grid, points, strict=True)]
        effect = [m + w * (v - m) for m, v in zip(effect, outputs, strict=True)]
        importance, slopes = importance_and_slopes(effect)
        told = added([s * v for s, v in zip(slopes, outputs, strict=True)])
        projections.update(np.array([[told]]))
        assert increment == importance_and_slopes(outputs)[0]
        assert curves.grid(0) == grid
        assert curves.effects(0)[1].tolist() == [effect]
        assert curves.values.item() == importance
        assert curves.variances.item() == projections.variances.item()
        assert curves._followed.tolist() == projections._followed[0].tolist()


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
    alone, points = [RankCurves(1, alpha) for _ in range(2)], np.array([[0.0, 1.0, 2.0]])
    for outputs, which in moves:
        tables = [table_of(outputs[:3]), table_of(outputs[3:])]
        if tables[0].labels == tables[1].labels and len(which) == 2:
            both = np.concatenate([table.numbers for table in tables])
            grids = points.repeat(2, axis=0)
            table = Table(tables[0].labels, both)
            moved = contributions(together.move(np.array(which, np.intp), grids, table))
        else:
            moved = [
                contributions(together.move(np.array([i], np.intp), points, tables[i]))[0]
                for i in which
            ]
        assert moved == [contributions(alone[i].move(FIRST, points, tables[i]))[0] for i in which]
    for i, curves in enumerate(alone):
        assert together.grid(i) == curves.grid(0)
        (labels, effects), (own_labels, own) = together.effects(i), curves.effects(0)
        assert (labels, effects.tolist()) == (own_labels, own.tolist())
        for of in ("n", "values", "variances", "std_errors"):
            assert getattr(together, of)[i] == getattr(curves, of)[0]


@PROPERTY
@given(st.integers(1, 80), st.integers(0, 999))
def test_a_permutation_is_the_sample_of_all(n: int, seed: int) -> None:
    one, other = random.Random(seed), random.Random(seed)
    assert permuted(n, one) == other.sample(range(n), n)
    assert one.getstate() == other.getstate()


@pytest.mark.parametrize("value", ["text", 10**400, np.int64(3)], ids=["text", "large", "NumPy's"])
def test_what_is_no_number_fails_or_not_as_the_model_does(value: Any) -> None:
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


@pytest.mark.parametrize(("n", "asked"), [(1, 2), (5, 1)])
def test_an_evaluator_that_gives_too_few_or_too_many_outputs_is_named(n: int, asked: int) -> None:
    explainer = IncrementalPFI(
        Scripted(lambda x: 0.0),
        ["a"],
        loss="squared_error",
        reservoir_size=1,
        evaluator=lambda inputs: Table((None,), np.zeros((n, 1))),
    )
    with pytest.raises(ValueError, match=f"gave {n} outputs on {asked} inputs"):  # noqa: PT012
        explainer.explain_one({"a": 1.0}, 1.0)
        explainer.explain_one({"a": 1.0}, 1.0)
