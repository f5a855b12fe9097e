"""The errors of explanations, the streams they are measured on, and the figures made of them."""

import math

import numpy as np
import pytest

from tests.kit.command import Clock
from tests.measure.benchmarks.variance import (
    ALPHAS,
    CELLS,
    DEFAULTS,
    RECORDS,
    break_even,
    figures,
    measured,
)
from tests.measure.benchmarks.variance_streams import (
    STREAMS,
    linear_stream,
    relative,
    relative_of_curves,
)
from tests.measure.coverage.streams import WEIGHTS


def test_errors_are_in_units_of_the_total() -> None:
    assert relative({"a": 4.0, "b": 1.0}, {"a": 3.0, "b": 1.0}) == pytest.approx(0.5 / 16.0)


def test_curves_are_compared_between_their_points_and_beyond_them() -> None:
    truth = {"a": (np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))}
    assert relative_of_curves({"a": ([0.0, 2.0], [0.0, 2.0])}, truth) == 0.0
    off = relative_of_curves({"a": ([0.0, 1.0], [0.0, 1.0])}, truth)  # 1 at the last point
    assert off == pytest.approx((1.0 / 3.0) / (2.0 / 3.0))


def test_the_second_concept_has_the_weights_in_reverse() -> None:
    stream = linear_stream("any", "independent")
    assert [*stream.truth("isage", 0).values()] == [weight**2 for weight in WEIGHTS.values()]
    assert [*stream.truth("isage", 1).values()] == [w**2 for w in [*WEIGHTS.values()][::-1]]
    points, effect = stream.curves()["b"]
    slopes = np.diff(effect) / np.diff(points)
    assert slopes == pytest.approx(np.full(len(slopes), WEIGHTS["b"]))


def test_a_long_run_comes_near_the_exact_values() -> None:
    stream = linear_stream("any", "independent")
    stream.reference = 3000
    for method in ("ipfi", "isage"):
        exact = stream.truth(method, 0)
        assert relative(stream._long_run(method, 0), exact) < 0.02**2


@pytest.mark.parametrize("name", ["friedman", "agrawal"])
def test_both_concepts_share_their_observations(name: str) -> None:
    stream = STREAMS[name]()
    records = stream.draw(50, 3)
    assert records == stream.draw(50, 3)
    assert any(ys[0] != ys[1] for _, ys in records)
    assert len(stream.evaluators) == 2


def test_each_setting_has_a_figure_and_the_default_is_the_unit() -> None:
    stream = linear_stream("any", "independent")
    found = {"any": measured(stream, range(2), 300, Clock())}
    lines = [*figures(found)]
    assert len(lines) == len(CELLS) + 2 * (3 * len(ALPHAS) - 1)
    units = [figure for figure in lines if "(default)" in figure.name]
    assert len(units) == len(DEFAULTS)
    assert all(figure.ratio == 1.0 for figure in units)
    assert all(figure.ratio > 0.0 for figure in lines if "error²" in figure.name)


def test_a_rate_that_is_better_without_a_change_is_always_better() -> None:
    assert break_even(2.0, 9.0, 1.0, 3.0) == math.inf
    assert break_even(1.0, 1.0 + 2.0 * 10, 2.0, 2.0) == RECORDS * 20.0
