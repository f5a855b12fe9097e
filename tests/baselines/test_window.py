"""Explanations of windows: when they are computed, and of what."""

from typing import Any

import pytest
from river import tree

from fluxplain.baselines import IntervalPFI, SlidingWindowSAGE, batch_pfi, batch_sage
from tests.kit.support import Linear, normal_rows

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
