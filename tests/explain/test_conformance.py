"""What every explainer keeps to, whatever it computes."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, forest, linear_model, multiclass, naive_bayes, preprocessing, tree

from fluxplain.evaluate import Label, Output
from fluxplain.explain import IncrementalPDP, IncrementalSAGE
from tests.explain.kinds import (
    FEATURES,
    IMPORTANCES,
    KINDS,
    NUMBERS,
    WINDOWS,
    Greedy,
    Kind,
    Known,
    explain,
    known,
    make,
    state,
    stream,
)
from tests.kit.support import (
    SLOW_PROPERTY,
    Constant,
    Row,
    Scripted,
    pickled,
    uses_no_global_random_numbers,
)

every_explainer = pytest.mark.parametrize("kind", KINDS, ids=str)
every_importance = pytest.mark.parametrize("kind", IMPORTANCES, ids=str)
also_windows = pytest.mark.parametrize("kind", [*KINDS, *WINDOWS], ids=str)
importances_and_windows = pytest.mark.parametrize("kind", [*IMPORTANCES, *WINDOWS], ids=str)


@also_windows
def test_neither_the_observation_nor_the_model_is_changed(kind: Kind) -> None:
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    for x, y in stream(50):
        model.learn_one({"a": x["a"], "b": x["b"]}, y)
    explainer = make(kind, model, ["a", "b"])
    before = pickle.dumps(model)
    for x, y in stream(30):
        asked = {"a": x["a"], "b": x["b"]}
        kept = dict(asked)
        explain(explainer, asked, y + 1.0)
        assert asked == kept
    assert any(explainer.values.values())
    assert pickle.dumps(model) == before


@also_windows
def test_a_model_that_changes_what_it_is_asked_about_does_no_harm(kind: Kind) -> None:
    clean, greedy = make(kind, Known()), make(kind, Greedy())
    for x, y in stream(30):
        kept = dict(x)
        assert explain(greedy, x, y) == explain(clean, x, y)
        assert x == kept


@also_windows
def test_the_callers_dictionaries_are_not_kept(kind: Kind) -> None:
    clean, abused = make(kind, Known()), make(kind, Known())
    for x, y in stream(40):
        mine = dict(x)
        values = explain(abused, mine, y)
        assert values == explain(clean, x, y)
        mine.update(a=1e9, b=1e9, c="spoiled")
        values.clear()
        for name in NUMBERS:
            getattr(abused, name, {}).clear()
    assert state(abused) == state(clean)


@SLOW_PROPERTY
@given(st.sampled_from([*KINDS, *WINDOWS]), st.integers(0, 40))
def test_a_pickle_round_trip_between_any_two_steps_changes_nothing(kind: Kind, cut: int) -> None:
    whole, resumed = make(kind, Known()), make(kind, Known())
    for t, (x, y) in enumerate(stream(40)):
        if t == cut:
            resumed = pickled(resumed)
        assert explain(resumed, x, y) == explain(whole, x, y)
        assert state(resumed) == state(whole)


@importances_and_windows
def test_another_seed_gives_other_values(kind: Kind) -> None:
    one, two, unseeded = (make(kind, Known(), seed=seed) for seed in (7, 8, None))
    for x, y in stream(60):
        for explainer in (one, two, unseeded):
            explain(explainer, x, y)
    assert one.values != two.values
    assert unseeded.values not in (one.values, two.values)


@also_windows
@pytest.mark.parametrize("seed", [1, None])
def test_global_random_state_is_neither_used_nor_changed(kind: Kind, seed: int | None) -> None:
    def values() -> dict[str, float] | None:
        explainer = make(kind, Known(), seed=seed)
        for x, y in stream(30):
            explain(explainer, x, y)
        return None if seed is None else explainer.values

    uses_no_global_random_numbers(values)


@also_windows
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


@also_windows
def test_features_beyond_the_explained_ones_reach_the_model(kind: Kind) -> None:
    explainer = make(kind, Known(), ["a"])
    for x, y in stream(20):
        explain(explainer, x, y)
    assert list(explainer.values) == ["a"]
    assert explainer.values["a"] != 0.0


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
    if kind.of is IncrementalPDP:
        assert explainer.curves == dict.fromkeys(FEATURES, ([], []))


@every_explainer
def test_explaining_starts_when_the_storage_holds_the_warm_up(kind: Kind) -> None:
    explainer = make(kind, Known(), size=8, warm_up=4)
    for t, (x, y) in enumerate(stream(8)):
        explain(explainer, x, y)
        assert bool(explainer.increments) == (t >= 4)


def categories(n: int) -> list[tuple[Row, float]]:
    """Return observations of which each has a category of its own."""
    return [({"id": f"user {t:06}"}, 1.0) for t in range(n)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "records", "model", "features"),
    [
        # trees grow for longer than a test can run: their bound is that of their depth
        *(
            pytest.param(kind, stream, Known(), FEATURES, id=str(kind))
            for kind in KINDS
            if kind.options.get("imputer") != "observational"
        ),
        *(
            pytest.param(kind, categories, Constant(1.0), ["id"], id=f"{kind}-categories")
            for kind in KINDS
        ),
    ],
)
def test_memory_is_bounded(kind: Kind, records: Any, model: object, features: list[str]) -> None:
    explainer = make(kind, model, features, size=50)
    sizes = []
    for t, (x, y) in enumerate(records(3_000), start=1):
        explain(explainer, x, y)
        if t in (1_000, 3_000):
            sizes.append(len(pickle.dumps(explainer)))
    assert abs(sizes[1] / sizes[0] - 1.0) < 0.03


def numpy_loss(y: Any, output: Output) -> Any:
    return np.abs(np.float64(y) - np.float64(output))  # type: ignore[arg-type]


def boolean_loss(y: Any, output: Output) -> Any:
    return np.float64(y) > np.float64(output)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        *((kind, "squared_error") for kind in KINDS),
        *((kind, loss) for kind in IMPORTANCES for loss in (numpy_loss, boolean_loss)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_keys_are_plain_text_and_values_plain_floats(kind: Kind, loss: Any) -> None:
    """Whatever model and loss give: NumPy's numbers are no JSON, so none may leave an explainer."""
    explainer = make(kind, Scripted(lambda x: np.float64(known(x))), loss=loss)
    for x, y in stream(30):
        assert all(type(value) is float for value in explain(explainer, x, y + 0.5).values())
    assert explainer.increments
    assert any(explainer.values.values())
    for name in NUMBERS:
        numbers = getattr(explainer, name)
        assert {type(key) for key in numbers} <= {str}
        assert {type(value) for value in numbers.values()} <= {float}


MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "regressor": (linear_model.LinearRegression, "number"),
    "tree regressor": (tree.HoeffdingTreeRegressor, "number"),
    "regression pipeline": (
        lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
        "number",
    ),
    "binary classifier": (linear_model.LogisticRegression, "binary"),
    "classification pipeline": (
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "binary",
    ),
    "pipeline in a pipeline": (
        lambda: compose.Pipeline(
            ("inner", preprocessing.StandardScaler() | linear_model.LogisticRegression())
        ),
        "binary",
    ),
    "naive Bayes": (naive_bayes.GaussianNB, "multi"),
    "tree": (lambda: tree.HoeffdingTreeClassifier(grace_period=20), "multi"),
    "forest": (lambda: forest.ARFClassifier(n_models=3, seed=1), "multi"),
    "classifier without probabilities": (
        lambda: multiclass.OutputCodeClassifier(
            linear_model.LogisticRegression(), code_size=4, coding_method="random", seed=1
        ),
        "multi",
    ),
}


@pytest.mark.sampled(45)
@every_explainer
@pytest.mark.parametrize(("factory", "task"), MODELS.values(), ids=MODELS)
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
