"""Partial dependence of a batch against its definition."""

import math
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fluxplain.baselines import batch_pdp
from tests.kit.support import Row, Scripted, normal_rows


def curved(x: Mapping[str, Any]) -> float:
    return float(math.sin(x["a"]) + x["a"] * x["b"])


XS = normal_rows(30, ["a", "b"], seed=1)


def test_the_effect_is_the_mean_output_at_each_point_between_the_quantiles() -> None:
    found = batch_pdp(Scripted(curved), XS, ["b", "a"], grid_size=5)
    assert list(found) == ["b", "a"]
    low, high = np.quantile([float(x["a"]) for x in XS], [0.05, 0.95], method="median_unbiased")
    grid = np.linspace(low, high, 5)
    ice = [[curved({**x, "a": point}) for point in grid] for x in XS]
    mean = [statistics.fmean(column) for column in zip(*ice, strict=True)]
    assert found["a"].grid == pytest.approx(grid)
    assert found["a"].effect == pytest.approx(mean)
    assert np.array(found["a"].ice) == pytest.approx(np.array(ice))
    assert found["a"].importance == pytest.approx(statistics.stdev(mean))


def test_a_categorical_feature_has_all_its_values() -> None:
    xs: list[Row] = [{"c": c, "n": n} for c, n in (("u", 1), ("w", 2), ("v", 1), ("u", 2))]
    model = Scripted(lambda x: {"u": 1.0, "v": 5.0, "w": 2.0}[x["c"]] * x["n"])
    found = batch_pdp(model, xs, ["c", "n"], categorical=["c", "n"])
    assert found["c"].grid == ["u", "v", "w"]
    assert found["c"].effect == pytest.approx([1.5, 7.5, 3.0])
    assert found["c"].importance == pytest.approx((7.5 - 1.5) / 4.0)
    assert found["n"].grid == [1, 2]
    assert batch_pdp(model, xs, ["c"])["c"] == found["c"]


def test_given_points_are_taken() -> None:
    found = batch_pdp(Scripted(curved), XS, ["a", "b"], grids={"a": [0.0, 7.0]})
    assert found["a"].grid == [0.0, 7.0]
    assert found["a"].effect == pytest.approx(
        [statistics.fmean(curved({**x, "a": point}) for x in XS) for point in (0.0, 7.0)]
    )
    assert len(found["b"].grid) == 10


def test_of_two_classes_the_larger_is_shown_also_where_an_output_lacks_it() -> None:
    model = Scripted(lambda x: {"yes": 0.75, "no": 0.25} if x["a"] > 0 else {"no": 1.0})
    xs = [{"a": -1.0}, {"a": -2.0}]
    found = batch_pdp(model, xs, ["a"], grids={"a": [-1.0, 1.0]})["a"]
    assert found.effect == [0.0, 0.75]
    assert found.ice == [[0.0, 0.75], [0.0, 0.75]]


def test_more_than_two_classes_have_one_curve_each_and_importance_is_their_mean() -> None:
    def output(x: Mapping[str, Any]) -> dict[Any, float]:
        return {"c": x["a"], "a": 0.5 * (1.0 - x["a"]), "b": 0.5 * (1.0 - x["a"])}

    found = batch_pdp(Scripted(output), [{"a": 0.0}], ["a"], grids={"a": [0.0, 1.0]})["a"]
    assert found.effect == {"a": [0.5, 0.0], "b": [0.5, 0.0], "c": [0.0, 1.0]}
    assert found.ice == [found.effect]
    spread = statistics.stdev([0.0, 1.0])
    assert found.importance == pytest.approx((spread + spread / 2 + spread / 2) / 3)
