"""Each compiled function computes what its definition says, bit for bit."""

import functools
import math
import operator
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label
from fluxplain.evaluate.table import Table, table_of
from fluxplain.explain import kernels
from fluxplain.explain.randoms import permuted
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.explain.storage import NumberStorage
from fluxplain.explain.trends import CurveTrends
from tests.kit.support import NUMBERS, PROPERTY

ALPHAS = st.floats(1e-3, 1.0)
SHARES = st.floats(0.0, 1.0)
FIRST = np.zeros(1, np.intp)
LABELS: tuple[Label, ...] = ("a", "b", "c")
ROWS = st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=12)


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
    together = RankCurves(2, alpha, trends=CurveTrends(2))
    alone = [RankCurves(1, alpha, trends=CurveTrends(1)) for _ in range(2)]
    points = np.array([[0.0, 1.0, 2.0]])
    for outputs, which in moves:
        tables = [table_of(outputs[:3]), table_of(outputs[3:])]
        if tables[0].labels == tables[1].labels and len(which) == 2:
            both = np.concatenate([table.numbers for table in tables])
            grids = points.repeat(2, axis=0)
            table = Table(tables[0].labels, both)
            moved = together.move(np.array(which, np.intp), grids, table).T.tolist()
        else:
            moved = [
                together.move(np.array([i], np.intp), points, tables[i])[:, 0].tolist()
                for i in which
            ]
        assert moved == [alone[i].move(FIRST, points, tables[i])[:, 0].tolist() for i in which]
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
