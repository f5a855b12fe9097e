"""scikit-learn's estimators as models, and what to give instead of something that is no model."""

import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import anomaly, linear_model
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from fluxplain.evaluate import Encoding, Inputs, evaluator_for
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalReasons, explain_together
from fluxplain.models import as_asked, from_sklearn, minus_score

RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=80), "n": RNG.integers(0, 5, 80), "c": RNG.choice(["u", "v"], 80)}
)
FEATURES = {"a": "numeric", "n": "numeric", "c": "categorical"}
NUMBER = 2.0 * FRAME["a"] + FRAME["n"]
BOOLEAN = NUMBER > 2.0
TEXT = BOOLEAN.map({True: "high", False: "low"})


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail on a warning of scikit-learn, such as that of missing names."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def encoded(final: Any) -> Any:
    """Return a pipeline that takes text."""
    return make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), (StandardScaler(), ["a", "n"])), final
    )


FITTED: dict[str, tuple[Callable[[], Any], str]] = {
    "classes": (lambda: encoded(LogisticRegression()).fit(FRAME, BOOLEAN), "boolean"),
    "texts": (lambda: encoded(LogisticRegression()).fit(FRAME, TEXT), "string"),
    "integers": (lambda: encoded(LogisticRegression()).fit(FRAME, BOOLEAN.astype(int)), "integer"),
    "no probabilities": (lambda: encoded(LinearSVC()).fit(FRAME, BOOLEAN), "boolean"),
    "numbers": (lambda: encoded(RandomForestRegressor(5)).fit(FRAME, NUMBER), "number"),
}


@pytest.mark.parametrize(("fit", "label"), FITTED.values(), ids=FITTED)
def test_a_fitted_estimator_gives_the_outputs_of_its_adapter(
    fit: Callable[[], Any], label: str
) -> None:
    estimator = fit()
    adapter: Any = from_sklearn(estimator, features=FEATURES, label=label, learn=False)
    x: Any = {"unknown": 1.0, **FRAME[["c", "n", "a"]].iloc[3].to_dict()}  # in another order
    replacements: list[Mapping[str, Any]] = [{}, {"a": 0.5}, {"c": "u"}, {"c": "v", "n": 2}]
    inputs = Inputs.replacing(Encoding().observe(x), replacements)
    table = evaluator_for(estimator)(inputs)
    many = adapter.predict_many if label == "number" else adapter.predict_proba_many
    assert table.outputs() == many(inputs.dicts())
    assert {type(each) for each in table.labels} <= {bool, int, str, type(None)}


def test_explainers_take_a_fitted_estimator() -> None:
    model = RandomForestRegressor(5, random_state=1).fit(FRAME[["a", "n"]], NUMBER)
    pfi = IncrementalPFI(model, ["a", "n"], loss="squared_error", reservoir_size=9, seed=1)
    pdp = IncrementalPDP(model, ["n"], storage_size=9, seed=1)
    reasons = IncrementalReasons(model, ["a", "n"], reservoir_size=9, seed=1)
    found = None
    for (_, row), y in zip(FRAME.iterrows(), NUMBER, strict=True):
        explain_together([pfi, pdp], row, y)
        found = reasons.explain_one(row)
    assert pfi.values["a"] > pfi.values["n"] > 0.0
    assert pdp.trends["n"] > 0.0
    assert found is not None
    assert found.base + sum(found.contributions.values()) == pytest.approx(found.output)


def test_an_estimator_may_learn_on() -> None:
    model = SGDClassifier(loss="log_loss", random_state=1).fit(FRAME[["a", "n"]], BOOLEAN)
    ask = evaluator_for(model)
    inputs = Inputs.replacing(Encoding().observe({"a": 1.0, "n": 1}), [{}])
    before = ask(inputs).outputs()
    model.partial_fit(FRAME[["a", "n"]], ~BOOLEAN)
    assert ask(inputs).outputs() != before


def test_a_feature_of_the_estimator_that_is_missing_is_named() -> None:
    model = LinearRegression().fit(FRAME[["a", "n"]], NUMBER)
    pfi = IncrementalPFI(model, ["a"], loss="squared_error", reservoir_size=2, seed=1)
    with pytest.raises(ValueError, match="lacks the feature 'n', to which LinearRegression"):
        pfi.explain_one({"a": 1.0}, 1.0)


def test_an_estimator_of_several_outputs_is_refused() -> None:
    two = pd.DataFrame({"y": NUMBER, "z": NUMBER})
    model = LinearRegression().fit(FRAME[["a"]], two)
    pfi = IncrementalPFI(model, ["a"], loss="squared_error")
    with pytest.raises(ValueError, match="LinearRegression predicts 2 numbers at once"):
        pfi.explain_one({"a": 1.0}, 1.0)
    with pytest.raises(TypeError, match="several classes at once"):
        evaluator_for(RandomForestClassifier(2).fit(FRAME[["a"]], two > 2.0))


ARRAY = FRAME[["a", "n"]].to_numpy()
CALL = r"from_sklearn\(model, features=\{'age': 'numeric'\}, label="


class Predictor:
    """A model of arrays that is no estimator of scikit-learn."""

    def predict(self, rows: Any) -> Any:
        return rows


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SGDClassifier(), f"SGDClassifier is not fitted.*{CALL}'boolean'\\), which learns"),
        (LinearRegression(), "LinearRegression is not fitted: fit it to a data frame$"),
        (
            RandomForestClassifier(2).fit(ARRAY, TEXT),
            f"fitted without names.*{CALL}'string', learn=False",
        ),
        (LinearRegression().fit(ARRAY, NUMBER), f"without names.*{CALL}'number', learn=False"),
        (IsolationForest().fit(ARRAY), f"as_asked.*{CALL}'none', learn=False.*minus_score"),
        (KMeans(2).fit(ARRAY), "KMeans predicts neither classes nor a number"),
        (StandardScaler(), "StandardScaler predicts neither"),
        (lambda x: 1.0, r"a function is no model: give types\.SimpleNamespace"),
        (abs, "a function is no model"),
        (linear_model.LinearRegression, r"is a class: .* such as LinearRegression\(\)"),
        (anomaly.HalfSpaceTrees(), r"HalfSpaceTrees gives a score.*as_asked\(model, 'none'\)"),
        (Predictor(), r"Predictor takes arrays.*predict_many\(rows\)"),
        (object(), "object cannot be evaluated: a model needs predict_proba_one or predict_one"),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else "",
)
def test_what_to_give_instead_of_the_model_is_named(model: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        IncrementalPFI(model, ["a"])


def test_what_is_named_works() -> None:
    one_by_one = linear_model.LinearRegression()
    detector = IsolationForest(n_estimators=5, random_state=1).fit(ARRAY)
    features = {"a": "numeric", "n": "numeric"}
    models: list[tuple[Any, Any]] = [
        (types.SimpleNamespace(predict_one=one_by_one.predict_one), "squared_error"),
        (as_asked(anomaly.HalfSpaceTrees(seed=1), "none"), minus_score),
        (
            as_asked(from_sklearn(detector, features=features, label="none", learn=False), "none"),
            minus_score,
        ),
        (
            from_sklearn(
                LinearRegression().fit(ARRAY, NUMBER),
                features=features,
                label="number",
                learn=False,
            ),
            "squared_error",
        ),
    ]
    for model, loss in models:
        pfi = IncrementalPFI(model, ["a", "n"], loss=loss, reservoir_size=2, seed=1)
        for (_, row), y in zip(FRAME[["a", "n"]].head(5).iterrows(), NUMBER, strict=False):
            values = pfi.explain_one(row, y)
        assert values.keys() == {"a", "n"}


def test_an_estimator_is_evaluated_in_one_way_only() -> None:
    model = LinearRegression().fit(FRAME[["a"]], NUMBER)
    assert evaluator_for(model, "batch") is not None
    with pytest.raises(TypeError, match="LinearRegression, cannot be evaluated that way"):
        evaluator_for(model, "generic")
