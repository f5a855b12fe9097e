"""Reasons are what the ``shap`` package finds for scikit-learn's forests, against the same records.

shap's interventional TreeExplainer computes in double precision, except that it holds thresholds,
the leaves' values, sums of these and the weights of paths as float32. So values are compared that
float32 represents, and weights are exact where a stored record differs from the explained one in
two features: then they are 1 and 1/2. For other records its error is that of float32.

Boosted classifiers are not among them: TreeExplainer scales the contributions to their log odds,
which are not the Shapley values of their probabilities.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from fluxplain.explain.output_reasons import IncrementalReasons, OutputReasons
from fluxplain.forest import as_arrays
from tests.kit.scikit_forests import exported

NAMES = tuple("abcdefghi")

FEW = NAMES[:5]
"""As many features as are enumerated whatever the model."""

EXACT = 1e-9

FLOAT32 = 1e-6
"""Rounding of a few sums of float32 numbers that are at most 4."""

EXPLAINED, STORED = 5, 20

STEPS = 1024.0
"""Leaves' values are multiples of 1 / STEPS: float32 represents them, their sums and halves."""

Fit = Callable[[pd.DataFrame], Any]


def amount(x: pd.DataFrame) -> Any:
    return x["a"] * x["b"] + (x["c"] > 0.0) * x["d"] + 0.3 * x["e"]


def is_high(x: pd.DataFrame) -> Any:
    return amount(x) > 0.0


def level(x: pd.DataFrame) -> Any:
    return np.digitize(amount(x), [-0.7, 0.7])


def fitted(kind: Any, target: Callable[[pd.DataFrame], Any], **parameters: Any) -> Fit:
    def fit(x: pd.DataFrame) -> Any:
        return kind(random_state=1, **parameters).fit(x, target(x))

    return fit


SIXTEEN = {"n_estimators": 16}
"""A power of two, so that the mean of the trees needs no rounding; so is the rate of boosting."""

FORESTS: dict[str, Fit] = {
    "random forest": fitted(RandomForestRegressor, amount, **SIXTEEN),
    "random forest, two classes": fitted(RandomForestClassifier, is_high, **SIXTEEN),
    "random forest, three classes": fitted(RandomForestClassifier, level, **SIXTEEN),
    "extra trees": fitted(ExtraTreesRegressor, amount, **SIXTEEN),
    "extra trees, three classes": fitted(ExtraTreesClassifier, level, **SIXTEEN),
}

BOOSTED = {
    "boosted": fitted(GradientBoostingRegressor, amount, n_estimators=30, learning_rate=0.125)
}


def frame(n: int, names: Sequence[str], seed: int) -> pd.DataFrame:
    """Return records of values that float32 represents."""
    values = np.random.default_rng(seed).normal(size=(n, len(names))).astype(np.float32)
    return pd.DataFrame(values.astype(np.float64), columns=list(names))


def rounded(model: Any) -> Any:
    """Round the values of all leaves to multiples of 1 / STEPS, and shares to a sum of 1."""
    for each in np.ravel(model.estimators_):
        values = each.tree_.value  # a view
        values[:] = np.round(values * STEPS) / STEPS
        if is_classifier(each):
            values[..., -1] = 1.0 - values[..., :-1].sum(axis=-1)
    return model


def differing_in_two(x: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return records like one, but for two features each."""
    rng, found = np.random.default_rng(seed), frame(STORED, list(x), seed)
    for row in range(STORED):
        kept = rng.permutation(len(x.columns))[2:]
        found.iloc[row, kept] = x.iloc[0, kept]
    return found


def reasons_for(model: Any, x: pd.DataFrame, stored: pd.DataFrame) -> OutputReasons:
    explainer = IncrementalReasons(model, list(x), reservoir_size=len(stored), seed=1)
    for row in stored.to_dict("records"):
        assert explainer.explain_one(row) is None, "warming up"
    [row] = x.to_dict("records")
    reasons = explainer.reasons(row)
    assert reasons is not None
    assert set(reasons.std_errors.values()) == {0.0}
    return reasons


def difference(reasons: OutputReasons, theirs: Any, model: Any) -> float:
    """Return the largest difference to shap's base and contributions of one record."""
    values, base = theirs.values[0], np.ravel(theirs.base_values)
    of = 0 if reasons.label is None else model.classes_.tolist().index(reasons.label)
    values = values if values.ndim == 1 else values[:, of]
    found = np.array([reasons.contributions[name] for name in theirs.feature_names])
    return max(float(np.abs(found - values).max()), abs(reasons.base - float(base[of])))


def by_trees(model: Any, x: pd.DataFrame, stored: pd.DataFrame) -> Any:
    import shap  # noqa: PLC0415  takes seconds, in each process that collects tests

    return shap.TreeExplainer(model, data=stored, feature_perturbation="interventional")(x)


def records(names: Sequence[str]) -> list[pd.DataFrame]:
    found = frame(EXPLAINED, names, seed=2)
    return [found.iloc[[i]].reset_index(drop=True) for i in range(EXPLAINED)]


@pytest.mark.parametrize("name", FORESTS | BOOSTED)
def test_estimators_have_the_contributions_of_the_tree_explainer(name: str) -> None:
    model = rounded((FORESTS | BOOSTED)[name](frame(400, FEW, seed=7)))
    largest = 0.0
    for i, x in enumerate(records(FEW)):
        stored = differing_in_two(x, seed=i)
        reasons = reasons_for(model, x, stored)
        assert reasons.way == "subsets"
        assert difference(reasons, by_trees(model, x, stored), model) <= EXACT
        largest = max(largest, *map(abs, reasons.contributions.values()))
    assert largest > 0.05


@pytest.mark.parametrize("name", FORESTS)
def test_exported_forests_have_the_contributions_of_the_tree_explainer(name: str) -> None:
    model = rounded(FORESTS[name](frame(400, NAMES, seed=7)))
    ours = as_arrays(exported(model, NAMES))
    for i, x in enumerate(records(NAMES)):
        stored = differing_in_two(x, seed=i)
        reasons = reasons_for(ours, x, stored)
        assert reasons.way == "structure"
        assert difference(reasons, by_trees(model, x, stored), model) <= EXACT


@pytest.mark.parametrize("name", FORESTS)
def test_against_any_records_only_the_rounding_of_shap_differs(name: str) -> None:
    model = FORESTS[name](frame(400, FEW, seed=7))
    ours, stored = as_arrays(exported(model, FEW)), frame(STORED, FEW, seed=1)
    for x in records(FEW):
        reasons = reasons_for(ours, x, stored)
        assert reasons.way == "structure"
        assert difference(reasons, by_trees(model, x, stored), model) <= FLOAT32
