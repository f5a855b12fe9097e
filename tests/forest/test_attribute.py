"""Shapley values of arrays are those of the definition: means over all orders of the players."""

import math
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest
from river import preprocessing
from river.datasets import synth

from fluxplain.evaluate import Encoding, Inputs, evaluator_for
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.forest import ARFClassifier, ARFRegressor, HoeffdingTreeClassifier, as_arrays
from tests.forest.models import outcome, pair, stream_of
from tests.forest.streams import STREAMS, Stream

MAJORITY: dict[str, Any] = {"leaf_prediction": "mc", "grace_period": 20, "tau": 0.1}
MEANS: dict[str, Any] = {"leaf_prediction": "mean", "grace_period": 20, "tau": 0.2}
SUMMED = {**MEANS, "aggregation_method": "mean"}

CASES: list[tuple[str, dict[str, Any]]] = [
    ("HoeffdingTreeClassifier", MAJORITY),
    ("HoeffdingTreeRegressor", MEANS),
    ("ARFClassifier", MAJORITY),
    ("ARFClassifier", {**MAJORITY, "disable_weighted_vote": True}),
    ("ARFRegressor", SUMMED),
    ("ARFRegressor", {**SUMMED, "disable_weighted_vote": False}),
    ("HoeffdingAdaptiveTreeClassifier", MAJORITY),
    ("HoeffdingAdaptiveTreeRegressor", MEANS),
    ("LeveragingBaggingClassifier", MAJORITY),
]

QUICK = {"categories", "missing"}

Values = tuple[Floats, Floats]
"""The mean answer on the rows, and the players' contributions."""


def by_definition(model: Any, names: Any, own: Floats, rows: Floats, players: Places) -> Values:
    """Return the values from the answers about all mixtures of the observation and a row."""
    n = int(players.max(initial=-1)) + 1
    masks = np.arange(1 << n)
    taken = np.array([[p < 0 or mask >> p & 1 for p in players.tolist()] for mask in masks])
    mixed = np.where(taken.astype(bool)[:, None], own, rows).reshape(-1, len(own))
    given = model.answer_rows(names, own, mixed)[1]
    worth = given.reshape(len(masks), len(rows), given.shape[1]).mean(axis=1)
    sizes = np.array([int(mask).bit_count() for mask in masks])
    weights = np.array([1.0 / (n * math.comb(n - 1, k)) for k in range(n)] + [0.0])
    contributions = np.zeros((n, given.shape[1]))
    for player in range(n):
        without = masks[masks >> player & 1 == 0]
        gains = worth[without | 1 << player] - worth[without]
        contributions[player] = weights[sizes[without]] @ gains
    return worth[0], contributions


def coded(model: Any, x: dict[str, Any], others: Stream) -> tuple[Floats, Floats]:
    """Return an observation and background rows with the model's codes."""
    inputs = [x, *[{**x, **{name: z[name] for name in x if name in z}} for z, _ in others]]
    numbers = np.array([[model.code(name, row[name]) for name in x] for row in inputs])
    return numbers[0], numbers[1:]


def drawn_players(rng: Random, n: int) -> Places:
    """Return single players, or some groups of columns, of which some have no player."""
    if rng.random() < 0.3:
        return np.arange(n)
    return np.array([rng.randrange(-1, 4) for _ in range(n)])


def same(found: Any, expected: Values, scale: float = 1.0) -> bool:
    """Return whether a model's values are the expected ones, but for rounding."""
    _, base, contributions = found
    pairs = zip((base, contributions), expected, strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, 0.0, 1e-12 * scale) for a, b in pairs)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("kind", "parameters"), CASES)
@pytest.mark.parametrize(
    "stream", [pytest.param(s, marks=[] if s in QUICK else pytest.mark.slow) for s in STREAMS]
)
def test_values_are_those_of_the_definition(
    kind: str, parameters: dict[str, Any], stream: str
) -> None:
    """Also with new categories, missing features, drifts, and groups of features."""
    rng, (_, model) = Random(1), pair(kind, parameters)
    records, compared = stream_of(kind, stream, 1200, parameters), 0
    for i, (seen, y) in enumerate(records):
        outcome(model.learn_one, seen, y)
        if i % 200 != 199 or not seen or model.river is not None:
            continue
        x = {**seen, "car": "new"} if stream == "categories" and i % 400 == 199 else seen
        own, rows = coded(model, x, rng.choices(records, k=9))
        players = drawn_players(rng, len(x))
        found = model.attribute_rows(tuple(x), own, rows, players)
        if found is None and "Adaptive" in kind:
            assert (model._made.state.adaptive.alternate >= 0).any()
            continue
        assert found is not None
        labels, answers = model.answer_rows(tuple(x), own, rows[:1])
        assert found[0] == labels
        scale = max(1.0, float(np.abs(answers).max(initial=0.0)))
        assert same(found, by_definition(model, tuple(x), own, rows, players), scale)
        compared += bool(found[2].any())
    assert compared or stream != "categories"


NUMERIC: dict[str, tuple[Any, Any]] = {
    "agrawal": (synth.Agrawal(seed=1), ARFClassifier(n_models=3, seed=1, **MAJORITY)),
    "led": (synth.LED(seed=1, irrelevant_features=True), HoeffdingTreeClassifier(**MAJORITY)),
    "sea": (synth.SEA(seed=1), ARFClassifier(n_models=3, seed=1, **MAJORITY)),
    "mixed": (synth.Mixed(seed=1), HoeffdingTreeClassifier(**MAJORITY)),
    "friedman": (synth.FriedmanDrift(seed=1), ARFRegressor(n_models=3, seed=1, **SUMMED)),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_contributions_add_up_to_the_answer_about_every_record(name: str) -> None:
    stream, model = NUMERIC[name]
    model, rng = model.clone(), Random(2)
    seen: list[Floats] = []
    for x, y in islice(stream, 500):
        names, own = tuple(x), np.array([*x.values()], np.float64)
        if len(seen) > 5:
            rows = np.array(rng.sample(seen, 5))
            labels, base, contributions = model.attribute_rows(names, own, rows, np.arange(len(x)))
            assert (labels, base.tolist()) == (
                model.answer_rows(names, own, rows)[0],
                pytest.approx(model.answer_rows(names, own, rows)[1].mean(axis=0), abs=1e-12),
            )
            answer = model.answer_rows(names, own, own[None])[1][0]
            assert np.allclose(base + contributions.sum(axis=0), answer, 0.0, 1e-9)
        seen.append(own)
        model.learn_one(x, y)


def learned(model: Any, n: int = 1500) -> tuple[Any, tuple[str, ...], Floats]:
    """Let a model learn; return it, the features, and the numbers of all observations."""
    records = STREAMS["numbers"](n)
    for x, y in records:
        model.learn_one(x, y)
    return model, tuple(records[0][0]), np.array([[*x.values()] for x, _ in records], np.float64)


@pytest.fixture(scope="module")
def forest() -> tuple[Any, tuple[str, ...], Floats]:
    return learned(ARFClassifier(n_models=3, seed=1, **MAJORITY))


def test_a_row_that_is_the_observation_contributes_nothing(forest: Any) -> None:
    model, names, rows = forest
    _, base, contributions = model.attribute_rows(names, rows[0], rows[:1], np.arange(9))
    assert not contributions.any()
    assert np.allclose(base, model.answer_rows(names, rows[0], rows[:1])[1][0], 0.0, 1e-15)


@pytest.mark.parametrize("n", [1, 61, 62, 63, 124, 125, 200])
def test_values_are_means_over_the_rows_however_many_there_are(forest: Any, n: int) -> None:
    model, names, rows = forest
    own, players = rows[-1], np.array([0, 1, 1, 2, 3, -1, 4, 5, 6])
    together = model.attribute_rows(names, own, rows[:n], players)
    each = [model.attribute_rows(names, own, rows[i : i + 1], players) for i in range(n)]
    mean = np.mean([one[1] for one in each], axis=0), np.mean([one[2] for one in each], axis=0)
    assert same(together, mean)


def test_features_that_no_tree_knows_get_nothing(forest: Any) -> None:
    model, names, rows = forest
    own, some, players = rows[-1], rows[:20], np.arange(9)
    _, base, contributions = model.attribute_rows(names, own, some, players)
    wide = np.insert(some, 4, 1.0, axis=1)
    found = model.attribute_rows(
        (*names[:4], "unknown", *names[4:]), np.insert(own, 4, 0.0), wide, np.insert(players, 4, 9)
    )
    assert same(found, (base, np.insert(contributions, 9, 0.0, axis=0)))


def test_without_players_nothing_is_replaced(forest: Any) -> None:
    model, names, rows = forest
    _, base, contributions = model.attribute_rows(names, rows[-1], rows[:9], np.full(9, -1))
    assert contributions.shape == (0, 2)
    assert np.allclose(base, model.answer_rows(names, rows[-1], rows[-1:])[1][0], 0.0, 1e-15)


def test_there_may_be_more_players_than_bits_of_an_integer() -> None:
    rng = Random(3)
    model: Any = HoeffdingTreeClassifier(**MAJORITY)
    names = tuple(f"f{i}" for i in range(80))
    rows = np.array([[rng.random() for _ in names] for _ in range(1500)])
    for row in rows:
        y = row[3] + row[70] > 1.0 or row[79] > 0.8
        model.learn_one(dict(zip(names, row.tolist(), strict=True)), y)
    _, base, contributions = model.attribute_rows(names, rows[0], rows[:70], np.arange(80))
    used = np.flatnonzero(contributions.any(axis=1))
    assert {3, 70, 79} & {*used.tolist()}
    assert len(used) < 12
    players = np.full(80, -1)
    players[used] = np.arange(len(used))
    # the others are no player's: they keep the observation's values, which no answer depends on
    expected = by_definition(model, names, rows[0], rows[:70], players)
    assert same((None, base, contributions[used]), expected)


def test_leaves_that_predict_by_naive_bayes_or_a_linear_model_have_none() -> None:
    model, names, rows = learned(HoeffdingTreeClassifier(grace_period=20))
    given = names, rows[-1], rows[:50], np.arange(9)
    assert model.attribute_rows(*given) is None
    model._made.state.leaves.correct[:] = 1.0, 0.0  # the majority is better everywhere
    assert same(model.attribute_rows(*given), by_definition(model, *given))
    regressor, names, rows = learned(
        ARFRegressor(n_models=2, seed=1, aggregation_method="mean", leaf_prediction="model")
    )
    assert regressor.attribute_rows(names, rows[-1], rows[:50], np.arange(9)) is None


def test_only_leaves_that_a_mixture_reaches_need_be_constant() -> None:
    model, names, rows = learned(HoeffdingTreeClassifier(grace_period=20))
    correct, own = model._made.state.leaves.correct, rows[-1]
    correct[:] = 0.0, 1.0
    node, state = int(model._made.state.trees.root[0]), model._made.state
    while state.nodes.kind[node]:
        column = int(state.nodes.feature[node])
        node = int(state.nodes.below[node, int(own[column] > state.nodes.test[node])])
    correct[state.nodes.leaf[node]] = 1.0, 0.0
    assert model.attribute_rows(names, own, own[None], np.arange(9)) is not None
    assert model.attribute_rows(names, own, rows, np.arange(9)) is None


def test_a_forest_that_is_no_sum_of_trees_has_none(forest: Any) -> None:
    regressor, names, rows = learned(ARFRegressor(n_models=2, seed=1, **MEANS))
    assert regressor.aggregation_method == "median"
    assert regressor.attribute_rows(names, rows[-1], rows[:50], np.arange(9)) is None
    model, names, rows = forest
    nodes = model._made.state.nodes
    weights, leaf = nodes.weight.copy(), model._made.state.trees.root[model._mains[0]]
    while nodes.kind[leaf]:
        leaf = nodes.below[leaf, 0]
    nodes.weight[leaf] = 0.0  # its votes sum to 0, those of all others to 1
    assert model.attribute_rows(names, rows[-1], rows, np.arange(9)) is None
    nodes.weight[:] = 0.0
    assert model.attribute_rows(names, rows[-1], rows, np.arange(9))[1].tolist() == [0.0, 0.0]
    nodes.weight[:] = weights


def test_an_adaptive_tree_with_alternate_trees_has_none() -> None:
    _, model = pair("HoeffdingAdaptiveTreeClassifier", MAJORITY)
    model, names, rows = learned(model)
    given = names, rows[-1], rows[:50], np.arange(9)
    model._made.state.adaptive.alternate[:] = -1
    assert model.attribute_rows(*given) is not None
    model._made.state.adaptive.alternate[0] = 1
    assert model.attribute_rows(*given) is None


def test_a_model_without_arrays_or_without_rows_has_none() -> None:
    model, one = HoeffdingTreeClassifier(**MAJORITY), np.ones(1)
    assert model.attribute_rows(("a",), one, one[None], np.zeros(1, np.intp)) is None
    model.learn_one({"a": 1.0}, "u")
    assert model.attribute_rows(("a",), one, one[None], np.zeros(1, np.intp)) is not None
    assert model.attribute_rows(("a",), one, np.empty((0, 1)), np.zeros(1, np.intp)) is None
    model.delta = 0.5
    assert model.river is not None
    assert model.attribute_rows(("a",), one, one[None], np.zeros(1, np.intp)) is None


@pytest.mark.parametrize("stream", ["numbers", "categories"])
def test_evaluators_attribute_inputs_in_their_own_codes(stream: str) -> None:
    records, encoding = STREAMS[stream](800), Encoding()
    model = as_arrays(ARFClassifier(n_models=3, seed=1, **MAJORITY))
    for x, y in records:
        model.learn_one(x, y)
    encoding.observe({**records[5][0], "car": "new"} if stream == "categories" else records[5][0])
    evaluator, x = evaluator_for(model), records[-1][0]
    assert isinstance(evaluator, FastEvaluator)
    inputs = Inputs.replacing(encoding.observe(x), [z for z, _ in records[:40]])
    found = evaluator.attributed(inputs, np.arange(9))
    table = evaluator(inputs)
    assert found is not None
    assert found.labels == table.labels
    assert np.allclose(found.base, table.numbers.mean(axis=0), 0.0, 1e-12)
    own, rows = coded(model, x, records[:40])
    assert same(found, by_definition(model, tuple(x), own, rows, np.arange(9)))


def test_behind_scalers_scaled_values_are_replaced() -> None:
    inner = HoeffdingTreeClassifier(**MAJORITY)
    model: Any = preprocessing.StandardScaler() | inner
    records = STREAMS["numbers"](800)
    for x, y in records:
        model.learn_one(x, y)
    evaluator, x = evaluator_for(model), records[-1][0]
    assert isinstance(evaluator, FastEvaluator)
    inputs = Inputs.replacing(Encoding().observe(x), [z for z, _ in records[:40]])
    found = evaluator.attributed(inputs, np.arange(9))
    assert found is not None
    scaled = [model["StandardScaler"].transform_one(z) for z in (x, *inputs.dicts())]
    numbers = np.array([[z[name] for name in x] for z in scaled])
    assert same(found, by_definition(inner, tuple(x), numbers[0], numbers[1:], np.arange(9)), 1e3)
    assert np.allclose(found.base, evaluator(inputs).numbers.mean(axis=0), 0.0, 1e-12)
    lost = Inputs(inputs.observed, np.full((2, 9), math.inf))
    assert evaluator.attributed(lost, np.arange(9)) is None
    untrained: Any = preprocessing.MinMaxScaler() | HoeffdingTreeClassifier(**MAJORITY)
    behind = evaluator_for(untrained)
    assert isinstance(behind, FastEvaluator)
    assert behind.attributed(inputs, np.arange(9)) is None
