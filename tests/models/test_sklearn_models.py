"""Fitted estimators of scikit-learn, and what is refused of them and of others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
)
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fluxplain.evaluate import GenericEvaluator, choose
from fluxplain.models import from_sklearn
from tests.kit.shop import FEATURES, records
from tests.kit.support import Row, outputs_of

TRAINED = records(200, "string")
ROWS: list[Row] = [x for x, _ in TRAINED]
FRAME = pd.DataFrame(ROWS)
LABELS = [y for _, y in TRAINED]
NUMBERS = FRAME[["a", "b"]].to_numpy()
TWO = {"a": "numeric", "b": "numeric"}


def test_a_fitted_pipeline_gets_a_frame_with_names() -> None:
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["shop"])
    )
    fitted = make_pipeline(columns, SGDClassifier(loss="log_loss", random_state=1))
    fitted.fit(FRAME, LABELS)
    # another order, and a feature that it does not know
    features = {"shop": "categorical", "other": "numeric", "b": "numeric", "a": "numeric"}
    model: Any = from_sklearn(fitted, features=features, label="string", learn=False)
    evaluator = choose(model).evaluator
    for x in ROWS[:20]:
        asked = {**x, "other": 1.0}
        expected = fitted.predict_proba(pd.DataFrame([x]))[0]
        [output] = outputs_of(evaluator, asked, [{}])
        assert isinstance(output, dict)
        assert list(output) == ["large", "medium", "small"]
        assert list(output.values()) == pytest.approx(list(expected), rel=1e-12)
        assert [output] == outputs_of(GenericEvaluator(model), asked, [{}])


def test_a_fitted_estimator_without_names_gets_values_in_the_order_of_the_features() -> None:
    fitted = HistGradientBoostingClassifier(max_iter=5, random_state=1).fit(NUMBERS, LABELS)
    model: Any = from_sklearn(fitted, features=TWO, label="string", learn=False)
    given = model.predict_proba_many([{"b": x["b"], "a": x["a"]} for x in ROWS])
    expected = fitted.predict_proba(NUMBERS)
    assert np.array([list(each.values()) for each in given]) == pytest.approx(expected)


def test_a_fitted_regressor_and_a_fitted_detector() -> None:
    target = NUMBERS[:, 0] * 2.0
    regressor = GradientBoostingRegressor(n_estimators=5, random_state=1).fit(NUMBERS, target)
    model: Any = from_sklearn(regressor, features=TWO, label="number", learn=False)
    assert model.predict_many(ROWS) == regressor.predict(NUMBERS).tolist()
    forest = IsolationForest(n_estimators=5, random_state=1).fit(NUMBERS)
    detector: Any = from_sklearn(forest, features=TWO, label="none", learn=False)
    assert detector.score_many(ROWS) == (-forest.score_samples(NUMBERS)).tolist()
    assert detector.score_one({"a": 100.0, "b": 0.0}) > np.mean(detector.score_many(ROWS))


def test_a_fitted_estimator_may_learn_on() -> None:
    fitted = SGDClassifier(loss="log_loss", random_state=1).partial_fit(
        NUMBERS[:100], LABELS[:100], classes=["large", "medium", "small"]
    )
    model: Any = from_sklearn(fitted, features=TWO, label="string")
    before = model.predict_proba_one(ROWS[0])
    for x, y in TRAINED[100:]:
        model.learn_one(x, y)
    assert model.predict_proba_one(ROWS[0]) != before


def test_an_autoencoder_finds_what_it_cannot_give_back() -> None:
    model: Any = from_sklearn(
        {
            "factory": "sklearn.neural_network:MLPRegressor",
            "hidden_layer_sizes": [1],
            "activation": "identity",
            "learning_rate_init": 0.05,
        },
        features=TWO,
        label="none",
        seed=1,
    )
    rng = np.random.default_rng(1)
    for a in rng.normal(size=500):
        model.learn_one({"a": a, "b": 2.0 * a})
    assert model.score_one({"a": 1.0, "b": -2.0}) > 10 * model.score_one({"a": 1.0, "b": 2.0})


SGD = "linear_model:SGDClassifier"


@pytest.mark.parametrize(
    ("estimator", "options", "reason"),
    [
        ("linear_model:SGD", {}, "sklearn.linear_model has no SGD"),
        ("no:SGD", {}, "cannot import sklearn.no"),
        ({"factory": f"sklearn.{SGD}", "los": 1}, {}, "'los': 1.*TypeError"),
        ({"factory": 3}, {}, "factory is 3"),
        ("preprocessing:StandardScaler", {}, "StandardScaler.*has no predict"),
        ("ensemble:RandomForestClassifier", {}, "no partial_fit.*model.learn to false"),
        ("naive_bayes:GaussianNB", {}, "cannot learn record by record"),
        ("linear_model:SGDRegressor", {}, "SGDRegressor is not a classifier"),
        (SGD, {"label": "number"}, "is not a regressor"),
        (SGD, {"label": "none"}, "is not an outlier detector"),
        ("linear_model:SGDRegressor", {"label": "none"}, "SGDRegressor cannot learn"),
        (SGD, {"label": "string"}, "classes is missing"),
        (SGD, {"label": "text"}, "label is 'text'"),
        (SGD, {"label": "string", "classes": ["a", 1]}, "has 1, but label.type is 'string'"),
        (SGD, {"label": "integer", "classes": [1]}, r"\[1\], but must hold at least two"),
        (SGD, {"label": "integer", "classes": 2}, "classes is 2, but must be a list"),
    ],
)
def test_what_cannot_be_used_is_told(estimator: Any, options: dict[str, Any], reason: str) -> None:
    factory = f"sklearn.{estimator}" if isinstance(estimator, str) else estimator
    with pytest.raises(ValueError, match=reason):
        from_sklearn(factory, features=FEATURES, **options)


FITTED: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "a feature that is not there": (
        lambda: SGDClassifier().fit(FRAME[["a", "b"]], LABELS),
        {"features": {"a": "numeric"}, "label": "string"},
        "fitted to the feature 'b', but there are only a",
    ),
    "another number of features": (
        lambda: SGDClassifier().fit(NUMBERS, LABELS),
        {"features": {"a": "numeric"}, "label": "string"},
        "fitted to 2 features, but there are 1: a",
    ),
    "that it cannot learn on": (
        lambda: HistGradientBoostingClassifier(max_iter=1).fit(NUMBERS, LABELS),
        {"features": TWO, "label": "string"},
        "no partial_fit.*model.learn to false",
    ),
    "other classes": (
        lambda: SGDClassifier().fit(NUMBERS, [y == "small" for y in LABELS]),
        {"features": TWO, "label": "string"},
        r"fitted to the classes \[False, True\], but label.type is 'string'",
    ),
}


@pytest.mark.parametrize("what", FITTED)
def test_what_a_fitted_estimator_was_fitted_to_is_told(what: str) -> None:
    make, options, reason = FITTED[what]
    with pytest.raises(ValueError, match=reason):
        from_sklearn(make(), **options)


def test_a_label_that_is_none_of_the_classes_is_told() -> None:
    model: Any = from_sklearn(
        "sklearn.linear_model:SGDClassifier", features=TWO, label="integer", classes=[0, 1], seed=1
    )
    with pytest.raises(ValueError, match=r"the label 2 is not one of \[0, 1\]"):
        model.learn_one({"a": 1.0, "b": 1.0}, 2)


def test_what_is_given_made_is_taken_as_it_is() -> None:
    model: Any = from_sklearn(
        MLPRegressor(hidden_layer_sizes=[3], random_state=1), features=TWO, label="number"
    )
    assert str(model) == "MLPRegressor"
    assert model.predict_one({"a": 1.0, "b": 1.0}) == 0.0
