"""Groups of features: one importance, replaced and revealed as a whole."""

import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.baselines import IntervalPFI, SlidingWindowSAGE, batch_pfi, batch_sage
from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from fluxplain.explain.losses import squared_error
from fluxplain.explain.players import Players
from tests.kit.support import PROPERTY, Linear, Row, normal_rows

GROUPS: list[Any] = ["a", {"pair": ["c", "b"]}]

SMALL = st.floats(-100.0, 100.0)
ROWS = st.lists(
    st.fixed_dictionaries({"a": SMALL, "b": SMALL, "c": st.integers(-2, 2)}),
    min_size=4,
    max_size=25,
)
IMPUTERS = st.sampled_from(["interventional", "product", "observational"])
MODEL = Linear({"a": 2.0, "b": -1.0, "c": 3.0})


def test_groups_keep_their_place_and_their_order() -> None:
    players = Players([{"pair": ["c", "b"]}, "a", {"rest": ["e"], "more": ["f", "d"]}])
    assert players.names == ("pair", "a", "rest", "more")
    assert players.members == (("c", "b"), ("a",), ("e",), ("f", "d"))
    assert players.features == ("c", "b", "a", "e", "f", "d")
    assert players.of([3, 1]) == ["f", "d", "a"]
    assert players.chosen({"more", "pair"}) == ("pair", "more")


@pytest.mark.parametrize(
    ("features", "told"),
    [
        ([{"g": []}], "the group 'g' is empty"),
        ([{"g": "ab"}], "the group 'g' is 'ab', but must be a list"),
        (["a", {"g": ["b", "a"]}], "features names 'a' more than once"),
        ([{"g": ["a"]}, {"h": ["a"]}], "features names 'a' more than once"),
        ([{"g": ["a"]}, {"g": ["b"]}], "features names 'g' more than once"),
        (["a", {"b": ["b", "c"]}], "the group 'b' has the name of a feature"),
        ([{"b": ["a"]}, "b"], "the group 'b' has the name of a feature"),
        ({"g": ["a"]}, "features is {'g'.*must be a list"),
        ([], "features is empty"),
        ([{}], "features is empty"),
    ],
)
def test_groups_that_cannot_be_players_are_told(features: Any, told: str) -> None:
    for kind in (IncrementalPFI, IncrementalSAGE, IntervalPFI, SlidingWindowSAGE):
        with pytest.raises(ValueError, match=told):
            kind(MODEL, features)
    for batch in (batch_pfi, batch_sage):
        with pytest.raises(ValueError, match=told):
            batch(MODEL, normal_rows(3, "abc", 1), [0.0] * 3, features)


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_a_missing_feature_of_a_group_is_named(
    kind: type[IncrementalPFI | IncrementalSAGE],
) -> None:
    with pytest.raises(ValueError, match="the observation lacks the feature 'b'"):
        kind(MODEL, GROUPS).explain_one({"a": 1.0, "c": 1.0}, 1.0)


@PROPERTY
@given(ROWS)
def test_ipfi_of_all_features_asks_about_whole_past_observations(rows: list[Row]) -> None:
    pfi = IncrementalPFI(
        MODEL,
        [{"all": ["c", "a", "b"]}],
        loss="squared_error",
        reservoir_size=1,
        seed=1,
    )
    for before, x in zip([None, *rows], rows, strict=False):
        pfi.explain_one(x, 1.0)
        if before is not None:
            mine, other = MODEL.predict_one(x), MODEL.predict_one(before)
            growth = squared_error(1.0, other) - squared_error(1.0, mine)
            assert pfi.increments == {"all": growth}


@pytest.mark.slow
def test_isage_of_a_group_that_the_model_ignores_is_zero_with_the_whole_reservoir() -> None:
    """Up to the mean prediction, which is not the reservoir's: within its standard error."""
    sage = IncrementalSAGE(
        Linear({"a": 2.0}),
        GROUPS,
        loss="squared_error",
        alpha=0.005,
        inner_samples="all",
        seed=1,
    )
    for x in normal_rows(3_000, "abc", seed=1):
        sage.explain_one(x, 2.0 * float(x["a"]))
    assert abs(sage.values["pair"]) < 4.0 * sage.std_errors["pair"] < 0.1 * sage.values["a"]


@pytest.mark.parametrize("imputer", ["interventional", "product", "observational"])
def test_what_replaces_a_group(imputer: str) -> None:
    """b is a, and c is c' of its own: one draw keeps b = a, separate ones mix them.

    Observational draws of a and c are such as go with b, which is not in their group.
    """
    rng = random.Random(1)
    asked: list[Row] = []

    class Listening:
        def predict_one(self, x: Row) -> float:
            asked.append(dict(x))
            return 0.0

    def replaced(groups: list[Any]) -> list[tuple[Row, Row]]:
        """Return each observation, and it with the group replaced."""
        pfi = IncrementalPFI(Listening(), groups, loss="absolute_error", imputer=imputer, seed=1)
        pairs = []
        for t in range(1_500):
            a = float(rng.random() < 0.5)
            x: Row = {"a": a, "b": a, "c": rng.random()}
            asked.clear()
            pfi.explain_one(x, 0.0)
            if t >= 500:
                pairs.append((x, asked[1]))
        return pairs

    together = replaced([{"pair": ["a", "b"]}, "c"])
    mixed = statistics.fmean(x["a"] != x["b"] for _, x in together)
    if imputer == "interventional":
        assert mixed == 0.0
    else:  # each drawn by itself, given what remains: c, which tells nothing of them
        assert abs(mixed - 0.5) < 4.0 * 0.5 / math.sqrt(1_000 / 2)
    assert all(new["c"] == x["c"] for x, new in together)
    told = replaced([{"others": ["a", "c"]}, "b"])
    right = statistics.fmean(new["a"] == new["b"] for _, new in told)
    assert right == 1.0 if imputer == "observational" else right < 0.6
    assert all(new["c"] != x["c"] for x, new in told)


def test_baselines_take_groups() -> None:
    xs = normal_rows(200, "abc", seed=1)
    ys = [MODEL.predict_one(x) for x in xs]
    options: dict[str, Any] = {"loss": "squared_error", "seed": 1}
    pfi = batch_pfi(MODEL, xs, ys, GROUPS, **options)
    interval = IntervalPFI(MODEL, GROUPS, interval=200, **options)
    sage = batch_sage(MODEL, xs, ys, GROUPS, **options)
    window = SlidingWindowSAGE(MODEL, GROUPS, window=200, **options)
    for x, y in zip(xs, ys, strict=True):
        interval.explain_one(x, y)
        window.explain_one(x, y)
    assert interval.values == pfi
    assert window.values == sage
    # E (w x̃ - w x)² = 2 w² for each of the independent features: 8 and 2 (1 + 9)
    assert pfi == pytest.approx({"a": 8.0, "pair": 20.0}, rel=0.3)
    # they share the variance of the output, 14
    assert sage == pytest.approx({"a": 4.0, "pair": 10.0}, rel=0.3)
