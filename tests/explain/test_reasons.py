"""Contributions of features to an output: exact where they say so, else within their errors."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import exp, factorial
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, linear_model, naive_bayes, optim, preprocessing, tree
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fluxplain.explain.output_reasons import IncrementalReasons, OutputReasons
from tests.kit import support as kit

NAMES = ("a", "b", "c", "d")

Row = Mapping[str, Any]

Players = Mapping[str, Sequence[str]]

EXACT = 1e-12


class Function:
    """A regressor that is a function of the features, and never learns."""

    def __init__(self, function: Callable[[Row], float]) -> None:
        self.predict_one = function


def output_of(model: Any, x: Row, label: Any) -> float:
    if label is None:
        return float(model.predict_one(x))
    return float(model.predict_proba_one(x).get(label, 0.0))


def enumerated(
    model: Any, x: Row, background: Sequence[Row], label: Any, players: Players
) -> dict[str, float]:
    """Return Shapley values from the outputs about each set of players, as they are defined."""
    names, n = list(players), len(players)
    worth: list[float] = []
    for chosen in range(1 << n):
        shown = {f: x[f] for i, name in enumerate(names) if chosen >> i & 1 for f in players[name]}
        outputs = [output_of(model, {**z, **shown}, label) for z in background]
        worth.append(sum(outputs) / len(outputs))

    def value(i: int) -> float:
        return sum(
            factorial(size := chosen.bit_count())
            * factorial(n - size - 1)
            / factorial(n)
            * (worth[chosen | 1 << i] - worth[chosen])
            for chosen in range(1 << n)
            if not chosen >> i & 1
        )

    return {name: value(i) for i, name in enumerate(names)}


def alone(names: Sequence[str]) -> Players:
    return {name: [name] for name in names}


def explained(
    model: Any, rows: Sequence[Row], x: Row, **settings: Any
) -> tuple[OutputReasons, IncrementalReasons]:
    """Return the reasons for the output on an input, against these rows."""
    features = settings.pop("features", list(x))
    given = {"reservoir_size": len(rows), "seed": 1, **settings}
    explainer = IncrementalReasons(model, features, **given)
    for row in rows:
        assert explainer.explain_one(row) is None, "warming up"
    reasons = explainer.reasons(x)
    assert reasons is not None
    return reasons, explainer


def assert_exact(
    model: Any, rows: Sequence[Row], x: Row, players: Players | None = None, **settings: Any
) -> OutputReasons:
    reasons, _ = explained(model, rows, x, **settings)
    expected = enumerated(model, x, rows, reasons.label, players or alone(list(x)))
    assert reasons.contributions == pytest.approx(expected, abs=EXACT)
    assert set(reasons.std_errors.values()) == {0.0}
    assert reasons.output == pytest.approx(output_of(model, x, reasons.label), abs=EXACT)
    assert reasons.base + sum(reasons.contributions.values()) == pytest.approx(reasons.output)
    return reasons


def trained(model: Any, n: int, label: Callable[[Row], Any]) -> Any:
    for x in shop_rows(n, seed=7):
        model.learn_one(x, label(x))
    return model


def normal_rows(n: int, names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    return [dict(row) for row in kit.normal_rows(n, names, seed)]


def shop_rows(n: int, seed: int, names: Sequence[str] = NAMES) -> list[Row]:
    """Return numbers, and a category that depends on the first of them."""
    rows = normal_rows(n, names, seed)
    return [{**x, "shop": "uvw"[int(x["a"] > 0) + int(x["b"] > 0)]} for x in rows]


def is_high(x: Row) -> bool:
    return bool(x["a"] + x["b"] * x["c"] > 0.0)


def amount(x: Row) -> float:
    return float(2.0 * x["a"] - x["b"] + (x["shop"] == "u"))


def encoded(final: Any) -> Any:
    numbers = compose.Select(*NAMES) | preprocessing.StandardScaler()
    return (numbers + (compose.Select("shop") | preprocessing.OneHotEncoder())) | final


LINEAR: Mapping[str, tuple[Callable[[], Any], Callable[[Row], Any]]] = {
    "numbers": (linear_model.LinearRegression, amount),
    "classes": (lambda: linear_model.LogisticRegression(optim.SGD(0.1)), is_high),
    "scaled": (lambda: preprocessing.MinMaxScaler() | linear_model.LinearRegression(), amount),
    "encoded": (lambda: encoded(linear_model.LogisticRegression(optim.SGD(0.1))), is_high),
    "encoded numbers": (lambda: encoded(linear_model.LinearRegression()), amount),
    "encoded numbers, scaled target": (
        lambda: encoded(preprocessing.TargetStandardScaler(linear_model.LinearRegression())),
        amount,
    ),
    "target range": (
        lambda: preprocessing.TargetMinMaxScaler(linear_model.LinearRegression()),
        amount,
    ),
    "passive-aggressive": (linear_model.PAClassifier, is_high),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_have_exact_contributions_of_any_players(name: str) -> None:
    make, label = LINEAR[name]
    has_shops = "encoded" in name
    names = (*NAMES, "shop") if has_shops else NAMES

    def only(x: Row) -> Row:
        return {f: x[f] for f in names}

    model = make()
    for x in shop_rows(300, seed=7):
        model.learn_one(only(x), label(x))
    rows = [only(x) for x in shop_rows(9, seed=1)]
    for x in map(only, shop_rows(3, seed=2)):
        assert_exact(model, rows, x)
    groups = {"a": ["a"], "rest": [f for f in names if f != "a"]}
    features = ["a", {"rest": groups["rest"]}]
    assert_exact(model, rows, only(shop_rows(1, seed=3)[0]), groups, features=features)


def test_a_linear_model_needs_no_sets_however_many_features_there_are() -> None:
    names = [f"f{i}" for i in range(60)]
    model = linear_model.LinearRegression()
    for x in normal_rows(200, names, seed=1):
        model.learn_one(x, x["f0"] - x["f1"])
    rows, [x] = normal_rows(20, names, seed=2), normal_rows(1, names, seed=3)
    reasons, _ = explained(model, rows, x)
    means = {f: statistics.fmean(row[f] for row in rows) for f in names}
    expected = {f: model.weights[f] * (x[f] - means[f]) for f in names}
    assert reasons.way == "structure"
    assert reasons.contributions == pytest.approx(expected, abs=EXACT)


MODELS: Mapping[str, Callable[[], Any]] = {
    "tree": lambda: tree.HoeffdingTreeClassifier(grace_period=20, leaf_prediction="mc"),
    "naive Bayes": naive_bayes.GaussianNB,
}


@pytest.mark.parametrize("name", MODELS)
def test_few_features_have_exact_contributions_whatever_the_model(name: str) -> None:
    model = MODELS[name]()
    for x in shop_rows(300, seed=7):
        model.learn_one({f: x[f] for f in NAMES}, is_high(x))
    rows = [{f: x[f] for f in NAMES} for x in shop_rows(9, seed=1)]
    for x in normal_rows(3, NAMES, seed=2):
        assert_exact(model, rows, x)


class OfFrames:
    """Asks an estimator of scikit-learn about one observation."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def predict_one(self, x: Row) -> float:
        return float(self._estimator.predict(pd.DataFrame([x]))[0])

    def predict_proba_one(self, x: Row) -> dict[Any, float]:
        [shares] = self._estimator.predict_proba(pd.DataFrame([x]))
        return dict(zip(self._estimator.classes_.tolist(), shares.tolist(), strict=True))


@pytest.mark.parametrize("kind", [RandomForestRegressor, RandomForestClassifier])
def test_forests_of_scikit_learn_have_the_contributions_of_their_enumeration(kind: Any) -> None:
    names = "abcde"
    frame = pd.DataFrame(normal_rows(300, names, seed=7))
    y = frame["a"] * frame["b"] + (frame["c"] > 0.0) * frame["d"]
    of_classes = kind is RandomForestClassifier
    forest = kind(10, random_state=1).fit(frame, y > 0.0 if of_classes else y)
    rows, [x] = normal_rows(8, names, seed=1), normal_rows(1, names, seed=2)
    reasons, _ = explained(forest, rows, x)
    expected = enumerated(OfFrames(forest), x, rows, reasons.label, alone(names))
    assert (reasons.label is not None) == of_classes
    assert max(map(abs, expected.values())) > 0.05
    assert reasons.contributions == pytest.approx(expected, abs=EXACT)
    assert set(reasons.std_errors.values()) == {0.0}


def test_some_classes_are_not_known_to_every_output() -> None:
    by_sign: dict[bool, Any] = {True: {"low": 0.25, "high": 0.75}, False: {"low": 1.0}}
    model = kit.Scripted(lambda x: by_sign[x["a"] > 0.0])
    rows = [{"a": float(i) - 1.5, "b": 0.0} for i in range(4)]
    assert_exact(model, rows, {"a": 1.0, "b": 0.0})
    assert_exact(model, rows, {"a": -1.0, "b": 0.0})


def test_a_class_that_only_other_outputs_name_counts_in_the_importance() -> None:
    by_sign: dict[bool, Any] = {True: {"low": 0.25, "high": 0.75}, False: {"low": 1.0}}
    model = kit.Scripted(lambda x: by_sign[x["a"] > 0.0])
    explainer = IncrementalReasons(model, ["a"], reservoir_size=2, alpha=1.0, seed=1)
    for a in (1.0, 2.0):
        explainer.explain_one({"a": a})
    explainer.explain_one({"a": -1.0})
    assert explainer.values["a"] == pytest.approx(0.75)
    high = explainer.reasons({"a": -1.0}, "high")
    assert high is not None
    assert high.output == 0.0


@pytest.mark.parametrize("stored", [[True, False, "u"], [1, 1], [True, 1, 0]])
def test_true_is_not_1_where_a_category_is_encoded_by_its_name(stored: list[Any]) -> None:
    model = preprocessing.OneHotEncoder() | linear_model.LinearRegression()
    for value, label in ((1, 5.0), (True, -5.0), (0, 1.0), (False, 0.0), ("u", 2.0)) * 20:
        model.learn_one({"k": value}, label)
    for value in (1, True, 0, False):
        assert_exact(model, [{"k": each} for each in stored], {"k": value})


numbers = st.floats(-3.0, 3.0).map(lambda v: round(v, 2))
rows_of = st.lists(st.fixed_dictionaries(dict.fromkeys("abcdefg", numbers)), min_size=1, max_size=6)


@kit.PROPERTY
@given(rows_of, st.integers(0, 1000), st.sampled_from([1, 30, 300]))
def test_the_contributions_always_sum_to_the_output_less_its_mean(
    rows: list[Row], seed: int, most_inputs: int
) -> None:
    model = Function(lambda x: exp(x["a"]) * x["b"] - x["c"] * x["d"] * x["e"] + abs(x["f"]))
    x = normal_rows(1, "abcdefg", seed)[0]
    reasons, _ = explained(model, rows, x, most_inputs=most_inputs, seed=seed)
    total = reasons.base + sum(reasons.contributions.values())
    size = max(map(abs, [*reasons.contributions.values(), reasons.base, 1.0]))
    assert abs(total - reasons.output) < 1e-12 * size
    assert reasons.contributions["g"] == 0.0, "it changes no output"


@pytest.mark.parametrize("most_inputs", [200, 10_000])
def test_where_at_most_two_features_act_together_estimates_are_exact(most_inputs: int) -> None:
    names = [f"f{i}" for i in range(9)]
    model = Function(lambda x: sum(x[f] * x[g] for f, g in pairwise(names)) + x["f0"] ** 3)
    rows, [x] = normal_rows(5, names, seed=1), normal_rows(1, names, seed=2)
    reasons, _ = explained(model, rows, x, most_inputs=most_inputs)
    assert reasons.way == "permutations"
    expected = enumerated(model, x, rows, None, alone(names))
    assert reasons.contributions == pytest.approx(expected, abs=1e-9)
    assert max(reasons.std_errors.values()) < 1e-9


def joint(x: Row) -> float:
    """Many features act together."""
    return float((x["f0"] > 0) + 3.0 * (sum(x.values()) > 0.0) * (x["f1"] > x["f2"]))


@pytest.mark.parametrize("most_inputs", [300, 1_500])
def test_estimates_are_unbiased_and_their_errors_hold(most_inputs: int) -> None:
    """The second takes all stored observations, the first draws from them."""
    names = [f"f{i}" for i in range(8)]
    rows, [x] = normal_rows(20, names, seed=1), normal_rows(1, names, seed=2)
    model = Function(joint)
    expected = enumerated(model, x, rows, None, alone(names))
    found = [
        explained(model, rows, x, most_inputs=most_inputs, error=1e-6, seed=seed)[0]
        for seed in range(100)
    ]
    for name in names:
        values = [each.contributions[name] for each in found]
        error = statistics.fmean(each.std_errors[name] ** 2 for each in found) ** 0.5
        spread = statistics.stdev(values)
        assert abs(statistics.fmean(values) - expected[name]) < 4.0 * spread / 10.0
        # the spread of 100 numbers is known within a fifth, three times its own error
        # draws at equal distances vary less than the error assumes
        assert 0.75 < error / spread < (1.35 if most_inputs > 1_000 else 2.5)
    assert {each.way for each in found} == {"permutations"}


def test_more_inputs_are_asked_about_until_the_error_is_small_enough() -> None:
    names = [f"f{i}" for i in range(8)]
    rows, [x] = normal_rows(20, names, seed=1), normal_rows(1, names, seed=2)
    for error in (0.3, 0.1, 0.03):
        given = {"error": error, "most_inputs": 100_000}
        reasons, _ = explained(Function(joint), rows, x, **given)
        largest = max(map(abs, reasons.contributions.values()))
        assert max(reasons.std_errors.values()) <= error * largest


def test_no_more_inputs_are_asked_about_than_is_allowed() -> None:
    names = [f"f{i}" for i in range(20)]
    asked = 0

    def counted(x: Row) -> float:
        nonlocal asked
        asked += 1
        return joint(x)

    rows, [x] = normal_rows(50, names, seed=1), normal_rows(1, names, seed=2)
    for most in (200, 1_000, 20_000):
        _, explainer = explained(Function(counted), rows, x, most_inputs=most, error=1e-9)
        asked = 0
        explainer.reasons(x)
        least = 50 + 16 * 19  # the stored ones, and two pairs of orders of four of them
        assert asked <= max(most, least) + 1, "and the observation itself"


def test_features_that_are_not_explained_keep_their_value() -> None:
    model = Function(lambda x: x["a"] * x["b"])
    rows = [{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 9.0}]
    reasons, _ = explained(model, rows, {"a": 5.0, "b": 10.0}, features=["a"])
    assert reasons.base == 20.0
    assert reasons.contributions == {"a": 30.0}


def test_what_equals_all_stored_observations_adds_nothing() -> None:
    row = dict.fromkeys("ab", 1.0)
    reasons, _ = explained(Function(lambda x: x["a"]), [row, row], row)
    assert reasons.base == reasons.output == 1.0
    assert reasons.contributions == {"a": 0.0, "b": 0.0}


def test_the_importance_is_the_mean_size_of_the_contributions_and_needs_no_label() -> None:
    """Features whose effects cancel on average have a flat curve, but large contributions."""
    model = Function(lambda x: x["a"] * x["b"])
    explainer = IncrementalReasons(model, ["a", "b", "c"], reservoir_size=20, seed=1)
    sizes: list[float] = []
    for x in normal_rows(600, "abc", seed=1):
        reasons = explainer.explain_one(x)
        sizes += [] if reasons is None else [abs(reasons.contributions["a"])]
    assert explainer.values["a"] > 0.3
    assert explainer.values["c"] < EXACT
    assert explainer.values["a"] == pytest.approx(statistics.fmean(sizes), rel=0.1)
    assert 0.0 < explainer.std_errors["a"] < 0.1


def test_with_two_classes_it_does_not_matter_which_one_is_explained() -> None:
    def both(x: Row) -> Any:
        p = 1.0 / (1.0 + exp(-x["a"] - 2.0 * x["b"]))
        return {False: 1.0 - p, True: p}

    explainer = IncrementalReasons(kit.Scripted(both), ["a", "b"], reservoir_size=10, seed=1)
    for x in normal_rows(30, "ab", seed=1):
        explainer.explain_one(x)
    one, other = (explainer.reasons(x, label) for label in (True, False))
    assert one is not None
    assert other is not None
    assert one.contributions == pytest.approx({f: -v for f, v in other.contributions.items()})
    assert explainer.reasons(x, "unknown") is None


def test_a_model_without_output_has_no_reasons_until_it_has_one() -> None:
    model = Function(lambda _x: None)  # type: ignore[arg-type,return-value]
    explainer = IncrementalReasons(model, ["a"], reservoir_size=2, seed=1)
    assert [explainer.explain_one({"a": float(i)}) for i in range(4)] == [None] * 4
    model.predict_one = lambda x: float(x["a"])
    assert explainer.explain_one({"a": 9.0}) is not None


def test_the_same_seed_gives_the_same_reasons_after_pickling_too() -> None:
    def make() -> IncrementalReasons:
        return IncrementalReasons(Joint(), [f"f{i}" for i in range(8)], reservoir_size=9, seed=3)

    one, other = make(), make()
    for x in normal_rows(30, [f"f{i}" for i in range(8)], seed=1):
        other = kit.pickled(other)
        assert one.explain_one(x) == other.explain_one(x)
    assert one.values == other.values


class Joint:
    """A model that can be pickled."""

    def predict_one(self, x: Row) -> float:
        return joint(x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"error": 0.0}, "error is 0.0, but must lie in"),
        ({"most_inputs": 0}, "most_inputs is 0, but must be an integer of at least 1"),
        ({"reservoir_size": 0}, "size is 0, but must be"),
        ({"warm_up": 101}, r"warm_up is 101, but must lie in \[1, 100\]"),
        ({"alpha": 2.0}, "alpha is 2.0"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IncrementalReasons(Joint(), ["a"], **settings)


def test_a_missing_feature_is_named() -> None:
    explainer = IncrementalReasons(Joint(), ["f0", "f9"], seed=1)
    with pytest.raises(ValueError, match="lacks the feature 'f9'"):
        explainer.explain_one({"f0": 1.0})


def test_the_order_in_which_observations_name_their_features_changes_no_draw() -> None:
    names = [f"f{i}" for i in range(8)]
    rows, [x] = normal_rows(20, names, seed=1), normal_rows(1, names, seed=2)
    shuffled = [dict(random.Random(i).sample([*row.items()], 8)) for i, row in enumerate(rows)]
    given = {"features": names, "most_inputs": 1_500}
    reasons, _ = explained(Function(joint), rows, x, **given)
    assert reasons.way == "permutations"
    assert max(reasons.std_errors.values()) > 0.0
    assert explained(Function(joint), shuffled, x, **given)[0] == reasons
    backwards = dict(reversed(x.items()))
    assert explained(Function(joint), rows, backwards, **given)[0] == reasons
    assert explained(Function(joint), rows, x, seed=2, **given)[0] != reasons, "it has draws"


def test_outputs_that_are_too_large_for_a_mean_are_an_error() -> None:
    model = Function(lambda x: 1e308 if x["a"] > 0.0 else -1e308)
    explainer = IncrementalReasons(model, ["a", "b"], reservoir_size=5, warm_up=4, seed=1)
    for x in normal_rows(4, "ab", seed=1):
        explainer.explain_one(x)
    with pytest.raises(ValueError, match="too large for a mean"):
        explainer.explain_one({"a": 1.0, "b": 0.0})
