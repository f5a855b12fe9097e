"""What must hold at every step, whatever the model and the data, also for groups of features."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, get_loss
from fluxplain.explain.players import Players
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
PLAYERS: st.SearchStrategy[list[Any]] = st.sampled_from([FEATURES, ["b", {"pair": ["c", "a"]}]])
ALPHAS = st.floats(1e-3, 1.0)
SMALL = st.floats(-100.0, 100.0)
ROWS = st.lists(
    st.fixed_dictionaries({"a": SMALL, "b": SMALL, "c": st.integers(-2, 2)}),
    min_size=4,
    max_size=25,
)
WEIGHTS = st.fixed_dictionaries({name: st.floats(-3.0, 3.0) for name in FEATURES})
CLASS_PROBABILITIES: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["no", "yes", "maybe"]), st.floats(0.0, 1.0), max_size=3
)
OPTIONS = st.fixed_dictionaries(
    {
        "alpha": ALPHAS,
        "inner_samples": st.integers(1, 4),
        "reservoir_size": st.integers(1, 3),
        "imputer": st.sampled_from(["interventional", "product", "observational"]),
        "debias": st.booleans(),
        "seed": st.just(1),
    }
)
"""Of iPFI and iSAGE."""

REGRESSING = st.sampled_from(["squared_error", "absolute_error"])
CLASSIFYING = st.sampled_from(["cross_entropy", "zero_one", "brier"])


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
    WEIGHTS,
    st.tuples(
        st.just(Linear), st.floats(-10, 10), st.sampled_from(["squared_error", "absolute_error"])
    )
    | st.tuples(st.just(bumpy), st.sampled_from(["yes", "no", "never seen"]), CLASSIFYING),
    st.sampled_from([FEATURES, ["b", {"pair": ["c", "a"]}], ["a"], [{"all": ["b", "a", "c"]}]]),
    OPTIONS,
)
def test_efficiency_isage_increments_sum_to_the_gain_over_the_mean(
    rows: list[Row],
    weights: dict[str, float],
    case: tuple[Any, Any, str],
    players: list[Any],
    options: dict[str, Any],
) -> None:
    """A single player has the whole gain."""
    kind, y, loss = case
    model, ell = kind(weights), get_loss(loss)
    ask = model.predict_one if kind is Linear else model.predict_proba_one
    sage = IncrementalSAGE(model, players, loss=loss, **options)
    for x in rows:
        sage.explain_one(x, y)
        if sage.increments:
            gain = ell(y, sage.mean_prediction) - ell(y, ask(x))
            assert list(sage.increments) == list(Players(players).names)
            # telescoping: each of the d + 1 losses (below 1e6 here) is rounded a few times
            tolerance = 0.0 if len(players) == 1 else 1e-8 if kind is Linear else 1e-11
            assert sum(sage.increments.values()) == pytest.approx(gain, rel=0, abs=tolerance)
    assert sage.increments


@PROPERTY
@given(
    ROWS,
    st.tuples(NUMBERS.map(Constant), NUMBERS, st.just("squared_error"))
    | st.tuples(
        CLASS_PROBABILITIES.map(ConstantProbabilities),
        st.sampled_from(["yes", "other"]),
        CLASSIFYING,
    ),
    OPTIONS,
)
def test_a_constant_model_has_exactly_no_importance(
    rows: list[Row], case: tuple[Any, Any, str], options: dict[str, Any]
) -> None:
    model, y, loss = case
    pfi = IncrementalPFI(model, FEATURES, loss=loss, **options)
    sage = IncrementalSAGE(model, FEATURES, loss=loss, **options)
    pdp = IncrementalPDP(model, FEATURES, alpha=options["alpha"], storage_size=3, seed=1)
    zero = dict.fromkeys(FEATURES, 0.0)
    for x in rows:
        assert pfi.explain_one(x, y) == zero
        assert sage.explain_one(x, y) == zero
        assert pdp.explain_one(x) == zero
        assert {*pdp.std_errors.values()} <= {0.0, math.inf}, "0 once it is known"
    for _, effect in pdp.curves.values():
        curves = effect.values() if isinstance(effect, dict) else [effect]
        assert all(len(set(curve)) <= 1 for curve in curves)
        if isinstance(model, Constant):
            assert set(*curves) == {model.predict_one(rows[0])}


@PROPERTY
@given(ROWS, SMALL, st.integers(-2, 2), WEIGHTS, PLAYERS, OPTIONS)
def test_a_player_that_never_changes_has_exactly_no_importance(
    rows: list[Row],
    a: float,
    c: int,
    weights: dict[str, float],
    players: list[Any],
    options: dict[str, Any],
) -> None:
    model = Linear(weights)
    pfi = IncrementalPFI(model, players, loss="absolute_error", **options)
    sage = IncrementalSAGE(model, players, loss="absolute_error", **options)
    pdp = IncrementalPDP(model, FEATURES, alpha=options["alpha"], storage_size=3, seed=1)
    fixed: Row = {"a": a} if players == FEATURES else {"a": a, "c": c}
    for t, row in enumerate(rows):
        # "b" always moves: among null players only, somebody must carry the gain over the mean
        x = {**row, **fixed, "b": float(t)}
        name = "a" if players == FEATURES else "pair"
        assert pfi.explain_one(x, 1.0)[name] == 0.0
        assert sage.explain_one(x, 1.0)[name] == 0.0
        assert all(pdp.explain_one(x)[feature] == 0.0 for feature in fixed)


@PROPERTY
@given(ROWS, PLAYERS, OPTIONS)
def test_ipfi_of_a_player_that_the_model_ignores_is_exactly_zero(
    rows: list[Row], players: list[Any], options: dict[str, Any]
) -> None:
    pfi = IncrementalPFI(Linear({"b": -1.0}), players, loss="absolute_error", **options)
    for x in rows:
        values = pfi.explain_one(x, 1.0)
        assert {v for name, v in values.items() if name != "b"} == {0.0}


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
