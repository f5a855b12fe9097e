"""What must hold at every step, whatever the model and the data."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, get_loss
from fluxplain.explain.losses import squared_error
from tests.kit.support import (
    NUMBERS,
    PROPERTY,
    Constant,
    ConstantProbabilities,
    Linear,
    Row,
    Scripted,
)

FEATURES = ["a", "b", "c"]
ALPHAS = st.floats(1e-3, 1.0)
SMALL = st.floats(-100.0, 100.0)
ROWS = st.lists(
    st.fixed_dictionaries({"a": SMALL, "b": SMALL, "c": st.integers(-2, 2)}),
    min_size=4,
    max_size=25,
)
CLASS_PROBABILITIES = st.dictionaries(
    st.sampled_from(["no", "yes", "maybe"]), st.floats(0.0, 1.0), max_size=3
)


def bumpy(weights: Mapping[str, float]) -> Scripted:
    """Probabilities that depend on all features, with a class missing now and then."""

    def output(x: Mapping[str, Any]) -> dict[Label, float]:
        score = sum(w * x[name] for name, w in weights.items()) % 1.0
        probabilities: dict[Label, float] = {"yes": score, "no": 1.0 - score}
        return {k: p for k, p in probabilities.items() if p > 0.2}

    return Scripted(output)


@PROPERTY
@given(
    ROWS,
    st.fixed_dictionaries({name: st.floats(-3.0, 3.0) for name in FEATURES}),
    st.floats(-10, 10),
    st.sampled_from(["squared_error", "absolute_error"]),
    ALPHAS,
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_efficiency_isage_increments_of_numbers_sum_to_the_gain_over_the_mean(
    rows: list[Row],
    weights: dict[str, float],
    y: float,
    loss: str,
    alpha: float,
    inner_samples: int,
    size: int,
) -> None:
    model, ell = Linear(weights), get_loss(loss)
    sage = IncrementalSAGE(
        model,
        FEATURES,
        loss=loss,
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=size,
        seed=1,
    )
    for x in rows:
        sage.explain_one(x, y)
        if not sage.increments:
            continue
        gain = ell(y, sage.mean_prediction) - ell(y, model.predict_one(x))
        # telescoping: each of the d + 1 losses (below 1e6 here) is rounded a few times
        assert sum(sage.increments.values()) == pytest.approx(gain, rel=0, abs=1e-8)
    assert sage.increments


@PROPERTY
@given(
    ROWS,
    st.fixed_dictionaries({name: st.floats(-3.0, 3.0) for name in FEATURES}),
    st.sampled_from(["yes", "no", "never seen"]),
    st.sampled_from(["cross_entropy", "zero_one", "brier"]),
    ALPHAS,
    st.integers(1, 4),
)
def test_efficiency_isage_increments_of_probabilities_sum_to_the_gain_over_the_mean(
    rows: list[Row],
    weights: dict[str, float],
    y: str,
    loss: str,
    alpha: float,
    inner_samples: int,
) -> None:
    model, ell = bumpy(weights), get_loss(loss)
    sage = IncrementalSAGE(
        model,
        FEATURES,
        loss=loss,
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        seed=1,
    )
    for x in rows:
        sage.explain_one(x, y)
        if not sage.increments:
            continue
        gain = ell(y, sage.mean_prediction) - ell(y, model.predict_proba_one(x))
        assert sum(sage.increments.values()) == pytest.approx(gain, rel=0, abs=1e-11)


@PROPERTY
@given(ROWS, NUMBERS, NUMBERS, ALPHAS, st.integers(1, 4), st.booleans())
def test_a_model_of_a_constant_number_has_exactly_no_importance(
    rows: list[Row], c: float, y: float, alpha: float, inner_samples: int, debias: bool
) -> None:
    model = Constant(c)
    pfi = IncrementalPFI(
        model,
        FEATURES,
        loss="squared_error",
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        debias=debias,
        seed=1,
    )
    sage = IncrementalSAGE(
        model,
        FEATURES,
        loss="squared_error",
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        debias=debias,
        seed=1,
    )
    pdp = IncrementalPDP(model, FEATURES, alpha=alpha, storage_size=3, seed=1)
    zero = dict.fromkeys(FEATURES, 0.0)
    for x in rows:
        assert pfi.explain_one(x, y) == zero
        assert sage.explain_one(x, y) == zero
        assert pdp.explain_one(x) == zero
        assert pdp.std_errors == zero or not pdp.increments
    assert all(effect == [c] * len(grid) for grid, effect in pdp.curves.values())


@PROPERTY
@given(
    ROWS,
    CLASS_PROBABILITIES,
    st.sampled_from(["yes", "other"]),
    st.sampled_from(["cross_entropy", "zero_one", "brier"]),
    ALPHAS,
    st.integers(1, 4),
)
def test_a_model_of_constant_probabilities_has_exactly_no_importance(
    rows: list[Row],
    output: dict[Label, float],
    y: str,
    loss: str,
    alpha: float,
    inner_samples: int,
) -> None:
    model = ConstantProbabilities(output)
    pfi = IncrementalPFI(
        model,
        FEATURES,
        loss=loss,
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        seed=1,
    )
    sage = IncrementalSAGE(
        model,
        FEATURES,
        loss=loss,
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        seed=1,
    )
    pdp = IncrementalPDP(model, FEATURES, alpha=alpha, storage_size=3, seed=1)
    zero = dict.fromkeys(FEATURES, 0.0)
    for x in rows:
        assert pfi.explain_one(x, y) == zero
        assert sage.explain_one(x, y) == zero
        assert pdp.explain_one(x) == zero
    for _, effect in pdp.curves.values():
        curves = effect.values() if isinstance(effect, dict) else [effect]
        assert all(len(set(curve)) <= 1 for curve in curves)


@PROPERTY
@given(
    ROWS,
    SMALL,
    st.fixed_dictionaries({name: st.floats(-3.0, 3.0) for name in FEATURES}),
    ALPHAS,
    st.integers(1, 4),
)
def test_a_feature_that_never_changes_has_exactly_no_importance(
    rows: list[Row], fixed: float, weights: dict[str, float], alpha: float, inner_samples: int
) -> None:
    model = Linear(weights)
    options: dict[str, Any] = {
        "loss": "absolute_error",
        "alpha": alpha,
        "inner_samples": inner_samples,
        "reservoir_size": 3,
        "seed": 1,
    }
    pfi = IncrementalPFI(model, FEATURES, **options)
    sage = IncrementalSAGE(model, FEATURES, **options)
    pdp = IncrementalPDP(model, FEATURES, alpha=alpha, storage_size=3, seed=1)
    for t, row in enumerate(rows):
        # "b" always moves: among null players only, somebody must carry the gain over the mean
        x = {**row, "a": fixed, "b": float(t)}
        assert pfi.explain_one(x, 1.0)["a"] == 0.0
        assert sage.explain_one(x, 1.0)["a"] == 0.0
        assert pdp.explain_one(x)["a"] == 0.0


@PROPERTY
@given(ROWS, ALPHAS, st.integers(1, 4))
def test_ipfi_of_a_feature_that_the_model_ignores_is_exactly_zero(
    rows: list[Row], alpha: float, inner_samples: int
) -> None:
    pfi = IncrementalPFI(
        Linear({"a": 2.0, "b": -1.0}),
        FEATURES,
        loss="absolute_error",
        alpha=alpha,
        inner_samples=inner_samples,
        reservoir_size=3,
        seed=1,
    )
    for x in rows:
        assert pfi.explain_one(x, 1.0)["c"] == 0.0


@PROPERTY
@given(ROWS, ALPHAS)
def test_the_order_of_explained_features_does_not_change_ipfi(
    rows: list[Row], alpha: float
) -> None:
    """One draw supplies all features, so each gets the value that it gets alone."""
    model = Linear({"a": 2.0, "b": -1.0, "c": 3.0})
    options: dict[str, Any] = {
        "loss": "squared_error",
        "alpha": alpha,
        "reservoir_size": 3,
        "seed": 1,
    }
    together = IncrementalPFI(model, FEATURES, **options)
    alone = {name: IncrementalPFI(model, [name], **options) for name in FEATURES}
    for x in rows:
        together.explain_one(x, 1.0)
        for name, explainer in alone.items():
            assert explainer.explain_one(x, 1.0)[name] == together.values[name]


@PROPERTY
@given(ROWS)
def test_with_a_single_feature_isage_is_the_whole_gain(rows: list[Row]) -> None:
    model = Linear({"a": 2.0, "b": 1.0})
    sage = IncrementalSAGE(model, ["a"], loss="squared_error", reservoir_size=2, seed=1)
    for x in rows:
        sage.explain_one(x, 1.0)
        if sage.increments:
            gain = squared_error(1.0, sage.mean_prediction) - squared_error(
                1.0, model.predict_one(x)
            )
            assert sage.increments == {"a": gain}
