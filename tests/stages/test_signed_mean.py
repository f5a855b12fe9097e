"""The signed mean of iSHAP: its smoothing, and when it is 0."""

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.schemas import Explanation
from tests.kit.stages import explanations
from tests.kit.support import Linear, linear_config, make_config

FEATURES = dict.fromkeys("abc", "numeric")


class Rising(Linear):
    """A model whose output rises with a, falls with b, and ignores c."""

    def __init__(self) -> None:
        super().__init__({"a": 2.0, "b": -1.0})


class Falling(Linear):
    """The same with the signs reversed."""

    def __init__(self) -> None:
        super().__init__({"a": -2.0, "b": 1.0})


class Likely:
    """A classifier that says "yes" more often the larger a is."""

    labels = "no", "yes"

    def predict_proba_one(self, x: dict[str, Any]) -> dict[str, float]:
        yes = 1.0 / (1.0 + math.exp(-x["a"]))
        return {label: yes if label == "yes" else 1.0 - yes for label in self.labels}

    def learn_one(self, x: dict[str, Any], y: str) -> None:
        pass


class LikelyYesFirst(Likely):
    """The same, which names the classes in the other order."""

    labels = "yes", "no"


def found(
    model: type[Linear], n: int, alphas: Sequence[float], *, moved_at: int | None = None
) -> dict[tuple[str, str, float], list[Explanation]]:
    """Return what is published by feature, method and rate; from ``moved_at`` on, a is larger."""
    config = linear_config(
        features=FEATURES,
        model=model,
        explain={
            "methods": ["ishap", "ipfi"],
            "alpha": list(alphas),
            "emit_every": 1,
            "ishap": {"reservoir_size": 20},
        },
    )
    rng, rows = random.Random(3), list[dict[str, Any]]()
    for t in range(n):
        x = {name: rng.gauss(0.0, 1.0) for name in FEATURES}
        x["a"] += 5.0 * (moved_at is not None and t >= moved_at)
        rows.append({"x": x, "y": 0.0})
    by_key: dict[tuple[str, str, float], list[Explanation]] = {}
    for each in explanations(config, rows):
        by_key.setdefault((each.feature, each.method, each.alpha), []).append(each)
    return by_key


def test_it_is_the_smoothed_mean_of_the_contributions_of_which_increments_are_the_sizes() -> None:
    published = found(Rising, 60, [1.0, 0.1])
    contributions = [each.signed for each in published["a", "ishap", 1.0]]
    sizes = [each.increments[0] for each in published["a", "ishap", 1.0]]
    assert [abs(each or 0.0) for each in contributions] == pytest.approx(sizes, rel=1e-9)
    means = ExponentialMeans(1, [0.1])
    for number, each in zip(contributions, published["a", "ishap", 0.1], strict=True):
        means.update(np.array([[number]], np.float64))
        assert each.signed == pytest.approx(means.values.item(), rel=1e-9)
    assert {each.signed for each in published["c", "ishap", 0.1]} == {0.0}, "it changes no output"
    assert {each.signed for each in published["a", "ipfi", 0.1]} == {None}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("model", "sign"), [(Rising, 1.0), (Falling, -1.0)])
def test_it_shows_where_inputs_that_moved_push_and_else_it_is_near_0(
    model: type[Linear], sign: float
) -> None:
    moved_at = 700
    a = found(model, 740, [0.02], moved_at=moved_at)["a", "ishap", 0.02]
    settled = [each for each in a if 300 <= each.seq < moved_at]
    assert max(abs(each.signed or 0.0) for each in settled) < 0.6 * min(e.value for e in settled)
    mean = sum(each.signed or 0.0 for each in settled) / len(settled)
    assert abs(mean) < 0.1 * settled[-1].value
    after = [sign * (each.signed or 0.0) for each in a if moved_at - 1 <= each.seq < moved_at + 4]
    assert all(later > earlier for earlier, later in pairwise(after))


def test_the_sign_does_not_depend_on_which_class_the_model_knew_first() -> None:
    settings: dict[str, Any] = {
        "loss": "cross_entropy",
        "methods": ["ishap"],
        "emit_every": 1,
        "ishap": {"reservoir_size": 20},
    }
    rng = random.Random(3)
    rows = [{"x": {"a": rng.gauss(2.0 * (t >= 90), 1.0)}, "y": "no"} for t in range(100)]
    signed = []
    for model in (Likely, LikelyYesFirst):
        config = make_config(
            features={"a": "numeric"},
            label={"type": "string"},
            model={"factory": f"{__name__}:{model.__name__}", "params": {}},
            explain=settings,
        )
        signed.append([each.signed or 0.0 for each in explanations(config, rows)])
    assert signed[0] == pytest.approx(signed[1])
    assert signed[0][-1] > signed[0][-11], "larger numbers make yes likelier"
