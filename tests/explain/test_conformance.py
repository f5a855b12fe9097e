"""What every explainer keeps to, whatever it computes."""

import copy
import math
import pickle
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, forest, linear_model, multiclass, naive_bayes, preprocessing, tree

from fluxplain.evaluate import Label, Output
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from tests.kit.support import SLOW_PROPERTY, Constant, Row, Scripted, pickled

Explainer = IncrementalPFI | IncrementalSAGE | IncrementalPDP


@dataclass(frozen=True)
class Kind:
    """A class of explainers with some of its options."""

    of: type[Explainer]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.of.__name__, *map(str, self.options.values())])


IMPORTANCES = [
    Kind(of, options)
    for of in (IncrementalPFI, IncrementalSAGE)
    for options in ({}, {"imputer": "product"}, {"imputer": "observational"})
]
KINDS = [
    *IMPORTANCES,
    Kind(IncrementalPDP),
    Kind(IncrementalPDP, {"grid": "range", "window": 8, "ice": 3}),
    Kind(IncrementalPDP, {"grid": "quantiles", "storage": "age-weighted"}),
]
FEATURES = ["a", "b", "c"]

every_explainer = pytest.mark.parametrize("kind", KINDS, ids=str)
every_importance = pytest.mark.parametrize("kind", IMPORTANCES, ids=str)


def make(
    kind: Kind,
    model: object,
    features: list[str] | None = None,
    *,
    loss: Any = "squared_error",
    seed: int | None = 1,
    size: int = 5,
    **options: Any,
) -> Explainer:
    """Return an explainer that is warm after a few observations."""
    names = FEATURES if features is None else features
    options = {**kind.options, **options, "seed": seed}
    if issubclass(kind.of, IncrementalPDP):
        return kind.of(model, names, storage_size=size, **options)
    return kind.of(model, names, loss=loss, reservoir_size=size, **options)


def explain(explainer: Explainer, x: Mapping[str, Any], y: Any) -> dict[str, float]:
    """Explain one observation, with its label if the explainer takes one."""
    if isinstance(explainer, IncrementalPDP):
        return explainer.explain_one(x)
    return explainer.explain_one(x, y)


def stream(n: int, seed: int = 1) -> list[tuple[Row, float]]:
    """Return observations of two numbers and one category, and a number that depends on them."""
    rng = random.Random(seed)
    records: list[tuple[Row, float]] = []
    for _ in range(n):
        a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.choice(["u", "v", "w"])
        records.append(({"a": a, "b": b, "c": c}, 2.0 * a - b + (c == "u")))
    return records


def known(x: Mapping[str, Any]) -> float:
    return float(2.0 * x["a"] - x["b"] + (x["c"] == "u"))


class Known:
    """The rule behind :func:`stream`, with ``predict_one`` only."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return known(x)


class Greedy:
    """A model that changes the dictionary that it is asked about."""

    def predict_one(self, x: dict[str, Any]) -> float:
        answer = known(x)
        x.clear()
        return answer


def state(explainer: Explainer) -> tuple[object, ...]:
    """Everything that a user can read."""
    curves = None
    if isinstance(explainer, IncrementalPDP):
        curves = (explainer.curves, explainer.ice)
    return (
        explainer.values,
        explainer.variances,
        explainer.std_errors,
        explainer.increments,
        explainer.confidence(0.1),
        curves,
    )


@every_explainer
def test_neither_the_observation_nor_the_model_is_changed(kind: Kind) -> None:
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    for x, y in stream(50):
        model.learn_one({"a": x["a"], "b": x["b"]}, y)
    explainer = make(kind, model, ["a", "b"])
    before = pickle.dumps(model)
    for x, y in stream(30):
        asked = {"a": x["a"], "b": x["b"]}
        kept = dict(asked)
        explain(explainer, asked, y)
        assert asked == kept
    assert any(explainer.values.values())
    assert pickle.dumps(model) == before


@every_explainer
def test_a_model_that_changes_what_it_is_asked_about_does_no_harm(kind: Kind) -> None:
    clean, greedy = make(kind, Known()), make(kind, Greedy())
    for x, y in stream(30):
        kept = dict(x)
        assert explain(greedy, x, y) == explain(clean, x, y)
        assert x == kept


@every_explainer
def test_the_callers_dictionaries_are_not_kept(kind: Kind) -> None:
    clean, abused = make(kind, Known()), make(kind, Known())
    for x, y in stream(40):
        mine = dict(x)
        values = explain(abused, mine, y)
        assert values == explain(clean, x, y)
        mine.update(a=1e9, b=1e9, c="spoiled")
        values.clear()
        for name in ("values", "increments", "std_errors", "variances"):
            getattr(abused, name).clear()
    assert state(abused) == state(clean)


@SLOW_PROPERTY
@given(st.sampled_from(KINDS), st.integers(0, 40))
def test_a_pickle_round_trip_between_any_two_steps_changes_nothing(kind: Kind, cut: int) -> None:
    whole, resumed = make(kind, Known()), make(kind, Known())
    for t, (x, y) in enumerate(stream(40)):
        if t == cut:
            resumed = pickled(resumed)
        assert explain(resumed, x, y) == explain(whole, x, y)
        assert state(resumed) == state(whole)


@every_explainer
def test_the_same_seed_gives_the_same_values(kind: Kind) -> None:
    one, two = make(kind, Known(), seed=7), make(kind, Known(), seed=7)
    for x, y in stream(60):
        assert explain(one, x, y) == explain(two, x, y)
    assert state(one) == state(two)


@every_importance
def test_another_seed_gives_other_values(kind: Kind) -> None:
    one, two, unseeded = (make(kind, Known(), seed=seed) for seed in (7, 8, None))
    for x, y in stream(60):
        for explainer in (one, two, unseeded):
            explain(explainer, x, y)
    assert one.values != two.values
    assert unseeded.values not in (one.values, two.values)


@every_explainer
@pytest.mark.parametrize("seed", [1, None])
def test_global_random_state_is_neither_used_nor_changed(kind: Kind, seed: int | None) -> None:
    random.seed(1)
    np.random.seed(1)
    before = (random.getstate(), np.random.get_state())
    explainer = make(kind, Known(), seed=seed)
    for x, y in stream(30):
        explain(explainer, x, y)
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(), before[1])
    random.seed(2)
    np.random.seed(2)
    again = make(kind, Known(), seed=seed)
    for x, y in stream(30):
        explain(again, x, y)
    if seed is not None:
        assert again.values == explainer.values


@every_explainer
@pytest.mark.parametrize("warm", [0, 20])
def test_a_missing_feature_is_named_and_leaves_the_explainer_as_it_was(
    kind: Kind, warm: int
) -> None:
    explainer, clean = make(kind, Known()), make(kind, Known())
    for x, y in stream(warm):
        explain(explainer, x, y)
        explain(clean, x, y)
    with pytest.raises(ValueError, match="lacks the feature 'b'"):
        explain(explainer, {"a": 1.0, "c": "u"}, 0.0)
    for x, y in stream(20, seed=2):
        assert explain(explainer, x, y) == explain(clean, x, y)


@every_explainer
def test_features_beyond_the_explained_ones_reach_the_model(kind: Kind) -> None:
    explainer = make(kind, Known(), ["a"])
    for x, y in stream(20):
        explain(explainer, x, y)
    assert list(explainer.values) == ["a"]
    assert explainer.values["a"] != 0.0


@every_explainer
@pytest.mark.parametrize("alpha", [0.0, -1.0, 1.5, math.nan])
def test_a_wrong_alpha_is_named(kind: Kind, alpha: float) -> None:
    with pytest.raises(ValueError, match=r"alpha is .*\(0, 1\]"):
        make(kind, Known(), alpha=alpha)


@every_explainer
@pytest.mark.parametrize("size", [0, -3])
def test_a_wrong_size_is_named(kind: Kind, size: int) -> None:
    with pytest.raises(ValueError, match=f"size is {size}"):
        make(kind, Known(), size=size)


@every_explainer
@pytest.mark.parametrize("warm_up", [0, -1, 6])
def test_a_wrong_warm_up_is_named(kind: Kind, warm_up: int) -> None:
    with pytest.raises(ValueError, match=rf"warm_up is {warm_up}.*\[1, 5\]"):
        make(kind, Known(), warm_up=warm_up)


@every_importance
@pytest.mark.parametrize("inner_samples", [0, -2])
def test_wrong_inner_samples_are_named(kind: Kind, inner_samples: int) -> None:
    with pytest.raises(ValueError, match=f"inner_samples is {inner_samples}"):
        make(kind, Known(), inner_samples=inner_samples)


@pytest.mark.parametrize(
    ("option", "value"), [("grid_size", 1), ("grid_size", 0), ("entrance_probability", 0.0)]
)
def test_wrong_options_of_ipdp_are_named(option: str, value: float) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ValueError, match=f"{option} is {value}"):
        make(Kind(IncrementalPDP), Known(), **options)


def test_an_unknown_imputer_or_sampler_is_named_with_what_is_allowed() -> None:
    for kind in map(Kind, (IncrementalPFI, IncrementalSAGE)):
        with pytest.raises(ValueError, match=r"'magic'.*interventional, product, observational"):
            make(kind, Known(), imputer="magic")
    with pytest.raises(ValueError, match=r"'magic'.*uniform, geometric"):
        make(Kind(IncrementalPFI), Known(), sampler="magic")


@pytest.mark.parametrize("kind", [kind for kind in IMPORTANCES if kind.options], ids=str)
def test_only_whole_observations_can_all_be_drawn(kind: Kind) -> None:
    with pytest.raises(ValueError, match=f"inner_samples is 'all'.*'{kind.options['imputer']}'"):
        make(kind, Known(), inner_samples="all")


def test_the_observational_imputer_has_no_uniform_reservoirs() -> None:
    with pytest.raises(ValueError, match=r"sampler must be 'geometric'.*'observational'"):
        make(Kind(IncrementalPFI), Known(), imputer="observational", sampler="uniform")


@every_explainer
def test_features_must_be_a_list_of_different_names(kind: Kind) -> None:
    with pytest.raises(ValueError, match="features is empty"):
        make(kind, Known(), [])
    with pytest.raises(ValueError, match="features names 'a' more than once"):
        make(kind, Known(), ["a", "b", "a"])
    with pytest.raises(ValueError, match="features is 'abc'"):
        make(kind, Known(), "abc")  # type: ignore[arg-type]


@every_explainer
def test_a_model_that_cannot_be_asked_is_named(kind: Kind) -> None:
    with pytest.raises(TypeError, match=r"object .*predict_proba_one or predict_one"):
        make(kind, object())


@every_importance
def test_a_loss_for_the_other_kind_of_output_is_refused_when_used(kind: Kind) -> None:
    explainer = make(kind, Known(), loss="cross_entropy", size=1)
    (first, y), (second, _) = stream(2)
    explain(explainer, first, y)
    with pytest.raises(TypeError, match="cross_entropy needs class probabilities"):
        explain(explainer, second, y)


@every_explainer
@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_a_wrong_confidence_level_is_named(kind: Kind, delta: float) -> None:
    with pytest.raises(ValueError, match="delta is"):
        make(kind, Known()).confidence(delta)


@every_explainer
def test_before_the_first_explanation_values_are_zero_and_errors_infinite(
    kind: Kind,
) -> None:
    explainer = make(kind, Known())
    assert explainer.values == dict.fromkeys(FEATURES, 0.0)
    assert explainer.std_errors == dict.fromkeys(FEATURES, math.inf)
    assert explainer.increments == {}


@every_explainer
def test_explaining_starts_when_the_storage_holds_the_warm_up(kind: Kind) -> None:
    explainer = make(kind, Known(), size=8, warm_up=4)
    for t, (x, y) in enumerate(stream(8)):
        explain(explainer, x, y)
        assert bool(explainer.increments) == (t >= 4)


@pytest.mark.parametrize(
    "kind",
    # trees grow for longer than a test can run: their bound is that of their depth
    [kind for kind in KINDS if kind.options.get("imputer") != "observational"],
    ids=str,
)
def test_memory_is_bounded(kind: Kind) -> None:
    explainer = make(kind, Known(), size=50)
    sizes = []
    for t, (x, y) in enumerate(stream(6_000), start=1):
        explain(explainer, x, y)
        if t in (2_000, 6_000):
            sizes.append(len(pickle.dumps(explainer)))
    assert abs(sizes[1] / sizes[0] - 1.0) < 0.03


@every_explainer
def test_memory_is_bounded_whatever_the_number_of_categories(kind: Kind) -> None:
    explainer = make(kind, Constant(1.0), ["id"], size=50)
    sizes = []
    for t in range(1, 6_001):
        explain(explainer, {"id": f"user {t:06}"}, 1.0)
        if t in (2_000, 6_000):
            sizes.append(len(pickle.dumps(explainer)))
    assert abs(sizes[1] / sizes[0] - 1.0) < 0.03


def assert_plain(explainer: Explainer) -> None:
    """Numpy's numbers are no JSON, so none may leave an explainer."""
    for name in ("values", "increments", "std_errors", "variances"):
        numbers = getattr(explainer, name)
        assert {type(key) for key in numbers} <= {str}
        assert {type(value) for value in numbers.values()} <= {float}


@every_explainer
def test_keys_are_plain_text_and_values_plain_floats(kind: Kind) -> None:
    explainer = make(kind, Scripted(lambda x: np.float64(known(x))))
    for x, y in stream(20):
        assert all(type(value) is float for value in explain(explainer, x, y).values())
    assert explainer.increments
    assert_plain(explainer)


def numpy_loss(y: Any, output: Output) -> Any:
    return np.abs(np.float64(y) - np.float64(output))  # type: ignore[arg-type]


def boolean_loss(y: Any, output: Output) -> Any:
    return np.float64(y) > np.float64(output)  # type: ignore[arg-type]


@every_importance
@pytest.mark.parametrize("loss", [numpy_loss, boolean_loss])
def test_a_users_loss_may_return_numpy_numbers_and_truth_values(
    kind: Kind, loss: Callable[[Any, Output], Any]
) -> None:
    explainer = make(kind, Known(), loss=loss)
    for x, y in stream(30):
        explain(explainer, x, y + 0.5)
    assert any(explainer.values.values())
    assert_plain(explainer)


MODELS: list[tuple[str, Callable[[], Any], str]] = [
    ("regressor", linear_model.LinearRegression, "number"),
    ("tree regressor", tree.HoeffdingTreeRegressor, "number"),
    (
        "regression pipeline",
        lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
        "number",
    ),
    ("binary classifier", linear_model.LogisticRegression, "binary"),
    (
        "classification pipeline",
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "binary",
    ),
    (
        "pipeline in a pipeline",
        lambda: compose.Pipeline(
            ("inner", preprocessing.StandardScaler() | linear_model.LogisticRegression())
        ),
        "binary",
    ),
    ("naive Bayes", naive_bayes.GaussianNB, "multi"),
    ("tree", lambda: tree.HoeffdingTreeClassifier(grace_period=20), "multi"),
    ("forest", lambda: forest.ARFClassifier(n_models=3, seed=1), "multi"),
    (
        "classifier without probabilities",
        lambda: multiclass.OutputCodeClassifier(
            linear_model.LogisticRegression(), code_size=4, coding_method="random", seed=1
        ),
        "multi",
    ),
]


@every_explainer
@pytest.mark.parametrize(
    ("factory", "task"), [row[1:] for row in MODELS], ids=[row[0] for row in MODELS]
)
def test_river_models_are_explained_from_their_first_record_on(
    kind: Kind, factory: Callable[[], Any], task: str
) -> None:
    """Test, explain, train; a classifier that has not learned yet knows no class."""
    model = factory()
    loss = "absolute_error" if task == "number" else "brier"
    explainer = make(kind, model, ["a", "b"], loss=loss, warm_up=1, alpha=0.1)
    for t, (x, y) in enumerate(stream(150)):
        numbers = {"a": x["a"], "b": x["b"]}
        label: Any = {"number": y, "binary": y > 0.0, "multi": f"class {int(abs(y)) % 3}"}[task]
        values = explain(explainer, numbers, label)
        assert all(math.isfinite(value) for value in values.values())
        # the first record only fills the storage
        assert bool(explainer.increments) == (t > 0)
        model.learn_one(numbers, label)
    assert explainer.values["a"] != 0.0


@every_explainer
def test_a_classifier_that_knows_no_class_yet_has_no_importance(kind: Kind) -> None:
    explainer = make(kind, naive_bayes.GaussianNB(), ["a", "b"], loss="cross_entropy")
    for x, _ in stream(20):
        assert explain(explainer, {"a": x["a"], "b": x["b"]}, True) == {"a": 0.0, "b": 0.0}


def test_isage_credits_a_class_that_appears_later() -> None:
    """Before it was seen, the mean prediction holds it as probability 0."""
    one: dict[Label, float] = {"a": 1.0}
    other: dict[Label, float] = {"a": 0.0, "b": 1.0}
    outputs = [one, one, one, other]
    remaining = iter(outputs)
    sage = IncrementalSAGE(
        Scripted(lambda x: next(remaining)), ["a"], loss="brier", alpha=0.5, reservoir_size=1
    )
    for t, output in enumerate(outputs):
        sage.explain_one({"a": float(t)}, max(output, key=output.__getitem__))
    # weights 1/15, 2/15, 4/15, 8/15
    mean = sage.mean_prediction
    assert isinstance(mean, dict)
    assert [mean["a"], mean["b"]] == pytest.approx([7 / 15, 8 / 15])
    assert sage.increments["a"] == pytest.approx(2 * (7 / 15) ** 2)


@every_explainer
def test_a_copy_goes_its_own_way(kind: Kind) -> None:
    explainer = make(kind, Known())
    for x, y in stream(20):
        explain(explainer, x, y)
    kept = copy.deepcopy(state(explainer))
    other = copy.deepcopy(explainer)
    for x, y in stream(20, seed=2):
        explain(other, x, y)
    assert state(explainer) == kept
    assert other.values != explainer.values
