"""Every baseline gives the same, however the model is asked."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from river import forest

from fluxplain.baselines import batch_pdp, batch_pfi, batch_sage
from tests.kit.support import agrawal


def effects(model: object, xs: Any, _ys: Any, features: Any, **options: Any) -> dict[str, Any]:
    found = batch_pdp(model, xs, features, **options)
    return {feature: np.array(each.effect) for feature, each in found.items()}


@pytest.mark.parametrize(
    "explain",
    [
        effects,
        partial(batch_pfi, permutations=3, seed=1),
        partial(batch_sage, inner_samples=2, seed=1),
    ],
)
def test_all_ways_to_ask_give_the_same(explain: Any) -> None:
    records = agrawal(600)
    model = forest.ARFClassifier(n_models=3, seed=1)
    for x, y in records:
        model.learn_one(x, y)
    xs, ys = zip(*records[:40], strict=True)
    one, other = (explain(model, xs, ys, [*xs[0]], evaluator=kind) for kind in ("auto", "generic"))
    for feature in xs[0]:
        assert one[feature] == pytest.approx(other[feature], abs=1e-9)
    assert any(np.any(value) for value in one.values())
