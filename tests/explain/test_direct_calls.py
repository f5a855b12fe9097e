"""Whatever types users give, compiled functions get the same: `tests/conftest.py` looks at them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import Scripted

OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "float32": ({"alpha": np.float32(0.25)}, {"alpha": 0.25}),
    "integer rate": ({"alpha": 1}, {"alpha": 1.0}),
    "NumPy's Boolean": ({"debias": np.False_}, {"debias": False}),
    "None": ({"debias": None}, {"debias": False}),
}
"""Settings of unusual types, and the same of the usual ones."""


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_importances_do_not_depend_on_the_types_of_settings(
    kind: Callable[..., Any], other: str
) -> None:
    def values(**settings: Any) -> dict[str, float]:
        model = Scripted(lambda x: x["a"] - 2.0 * x["b"])
        explainer = kind(model, ["a", "b"], loss="squared_error", seed=1, warm_up=5, **settings)
        for i in range(20):
            explainer.explain_one({"a": float(i % 3), "b": float(i % 5)}, 1.0)
        return dict(explainer.values)

    unusual, usual = OTHERS[other]
    assert values(**unusual) == values(**usual)


def test_curves_do_not_depend_on_the_types_of_settings() -> None:
    def grid(size: Any) -> Sequence[object]:
        pdp = IncrementalPDP(Scripted(lambda x: x["a"]), ["a"], grid_size=size, seed=1)
        for i in range(200):
            pdp.explain_one({"a": float(i % 7)})
        return [*pdp.curves["a"][0]]

    assert grid(5) == grid(np.int32(5)) == grid(np.int64(5))


def test_means_of_integers_are_those_of_the_same_floats() -> None:
    means = [ExponentialMeans(1, [0.5]) for _ in range(2)]
    means[0].update(np.array([[1], [3]]))
    means[1].update(np.array([[1.0], [3.0]]))
    assert means[0].values.tolist() == means[1].values.tolist()
