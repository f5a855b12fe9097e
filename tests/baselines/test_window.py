"""Explanations of windows: when they are computed, and of what."""

import pickle
from typing import Any

import pytest
from river import linear_model, tree

from fluxplain.baselines import IntervalPFI, SlidingWindowSAGE, batch_pfi, batch_sage
from tests.kit.support import Linear, normal_rows, pickled

MODEL = Linear({"a": 2.0, "b": -1.0})
ROWS = normal_rows(60, ["a", "b"], seed=1)
KINDS: list[Any] = [
    lambda model, **options: IntervalPFI(model, ["a", "b"], interval=10, **options),
    lambda model, **options: SlidingWindowSAGE(model, ["a", "b"], window=10, stride=4, **options),
]

every_explainer = pytest.mark.parametrize("make", KINDS)


def explain(explainer: Any, rows: list[Any]) -> list[dict[str, float]]:
    return [explainer.explain_one(x, MODEL.predict_one(x)) for x in rows]


def test_interval_pfi_explains_each_interval_at_its_end() -> None:
    pfi = IntervalPFI(MODEL, ["a", "b"], interval=20, loss="squared_error", seed=1)
    values = explain(pfi, ROWS)
    zero = {"a": 0.0, "b": 0.0}
    changes = [t for t in range(60) if values[t] != (values[t - 1] if t else zero)]
    assert changes == [19, 39, 59]
    ys = [MODEL.predict_one(x) for x in ROWS]
    assert values[19] == batch_pfi(
        MODEL, ROWS[:20], ys[:20], ["a", "b"], loss="squared_error", seed=1
    )


def test_interval_pfi_of_a_later_interval_knows_nothing_of_the_earlier() -> None:
    pfi = IntervalPFI(MODEL, ["a", "b"], interval=20, loss="squared_error", seed=1)
    values = explain(pfi, [*ROWS[:20], *[{"a": 3.0, "b": 1.0}] * 20])
    assert values[-2]["a"] > 0.0
    assert values[-1] == {"a": 0.0, "b": 0.0}


def test_sliding_window_sage_explains_the_last_window_after_each_stride() -> None:
    sage = SlidingWindowSAGE(
        MODEL, ["a", "b"], window=20, stride=7, loss="squared_error", inner_samples="all", seed=1
    )
    values = explain(sage, ROWS)
    zero = {"a": 0.0, "b": 0.0}
    changes = [t for t in range(60) if values[t] != (values[t - 1] if t else zero)]
    assert changes == [19, 26, 33, 40, 47, 54]
    ys = [MODEL.predict_one(x) for x in ROWS]
    for t in changes:
        window = slice(t - 19, t + 1)
        batch = batch_sage(MODEL, ROWS[window], ys[window], ["a", "b"], loss="squared_error")
        # the sum is the gain over the mean prediction, in whatever order features are revealed
        assert sum(values[t].values()) == pytest.approx(sum(batch.values()))


def test_the_stride_is_a_twentieth_of_the_window_unless_given() -> None:
    assert SlidingWindowSAGE(MODEL, ["a"], window=100).stride == 5
    assert SlidingWindowSAGE(MODEL, ["a"], window=5).stride == 1


def test_the_current_model_explains_the_whole_window() -> None:
    model = Linear({"a": 1.0})
    sage = SlidingWindowSAGE(model, ["a"], window=10, stride=10, loss="squared_error", seed=1)
    explain(sage, ROWS[:15])
    model.weights["a"] = 5.0
    explain(sage, ROWS[15:20])
    xs, ys = ROWS[10:20], [MODEL.predict_one(x) for x in ROWS[10:20]]
    assert sage.values == batch_sage(model, xs, ys, ["a"], loss="squared_error")


@every_explainer
def test_neither_the_observation_nor_the_model_is_changed(make: Any) -> None:
    model = linear_model.LinearRegression()
    for x in ROWS:
        model.learn_one(x, MODEL.predict_one(x))
    before = pickle.dumps(model)
    explainer = make(model, loss="squared_error", seed=1)
    for x in ROWS:
        asked = dict(x)
        explainer.explain_one(asked, 1.0)
        assert asked == x
    assert any(explainer.values.values())
    assert pickle.dumps(model) == before


@every_explainer
def test_the_callers_dictionaries_are_not_kept(make: Any) -> None:
    clean, abused = (make(MODEL, loss="squared_error", seed=1) for _ in range(2))
    for x in ROWS:
        mine = dict(x)
        values = abused.explain_one(mine, 1.0)
        assert values == clean.explain_one(x, 1.0)
        mine["a"] = 1e9
        values.clear()


@every_explainer
@pytest.mark.parametrize("cut", [0, 7, 10, 33])
def test_a_pickle_round_trip_changes_nothing(make: Any, cut: int) -> None:
    whole, resumed = (make(MODEL, loss="squared_error", seed=1) for _ in range(2))
    explain(resumed, ROWS[:cut])
    assert explain(whole, ROWS)[cut:] == explain(pickled(resumed), ROWS[cut:])


@every_explainer
def test_another_seed_gives_other_values(make: Any) -> None:
    one, two = (make(MODEL, loss="squared_error", seed=seed) for seed in (1, 2))
    explain(one, ROWS)
    explain(two, ROWS)
    assert one.values != two.values


@every_explainer
def test_a_missing_feature_is_named_and_leaves_the_explainer_as_it_was(make: Any) -> None:
    explainer, clean = (make(MODEL, loss="squared_error", seed=1) for _ in range(2))
    with pytest.raises(ValueError, match="lacks the feature 'b'"):
        explainer.explain_one({"a": 1.0}, 1.0)
    assert explain(explainer, ROWS) == explain(clean, ROWS)


@every_explainer
def test_a_model_that_has_nothing_to_say_yet_has_no_importance_yet(make: Any) -> None:
    class Silent:
        def predict_one(self, x: object) -> None:
            return None

    assert explain(make(Silent(), loss="squared_error"), ROWS)[-1] == {"a": 0.0, "b": 0.0}


@every_explainer
def test_a_model_that_learns_beside_it(make: Any) -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=10)
    explainer = make(model, seed=1)
    for x in ROWS:
        y = MODEL.predict_one(x) > 0.0
        explainer.explain_one(x, y)
        model.learn_one(x, y)
    assert any(explainer.values.values())


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (IntervalPFI, {"interval": 1}, "interval is 1"),
        (IntervalPFI, {"permutations": 0}, "permutations is 0"),
        (SlidingWindowSAGE, {"window": 1}, "window is 1"),
        (SlidingWindowSAGE, {"stride": 0}, "stride is 0"),
        (SlidingWindowSAGE, {"inner_samples": 0}, "inner_samples is 0"),
        (SlidingWindowSAGE, {"loss": "best"}, "unknown loss"),
    ],
)
def test_an_argument_out_of_range_is_named(kind: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(MODEL, ["a"], **options)
