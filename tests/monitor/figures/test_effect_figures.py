"""Curves and surfaces: what is drawn of them, and that all text can be read."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from fluxplain.monitor.figures import curves_figure
from fluxplain.monitor.figures.effect_figures import (
    MAX_EARLIER,
    MAX_PANELS,
    Effects,
    effects_of,
    surfaces_figure,
)
from fluxplain.monitor.figures.style import GREY, PALETTE
from fluxplain.results.selection import SelectedResults
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas import Explanation
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Value
from tests.monitor.figures.layout import assert_readable, panels, written
from tests.monitor.figures.samples import GRID, explained, names, stream_of


@cache
def view_of(n: int, *, long: bool = False) -> StreamView:
    return SelectedResults.of(stream_of(n, long=long)).view


def lines(axes: Axes, color: str) -> list[list[float]]:
    """Return the curves of a colour, their effects."""
    found = [line for line in axes.lines if to_hex(line.get_color()).upper() == color]
    return [np.asarray(line.get_ydata()).tolist() for line in found]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n", "width"), [(1, 7.2), (1, 5.0), (6, 5.0), (6, 7.2), (100, 7.2)])
def test_all_text_can_be_read(n: int, width: float) -> None:
    effects = effects_of(view_of(100, long=True) if n == 100 else view_of(6))[:n]
    assert_readable(curves_figure(effects, width_in=width))


def test_a_panel_has_the_curve_now_with_its_grid_earlier_ones_and_those_of_single_records() -> None:
    [each] = effects_of(view_of(6), features=["f1"])
    axes = curves_figure([each]).axes[0]
    assert each.curves[-1].effect in lines(axes, PALETTE[0])
    assert len(lines(axes, PALETTE[0])) == 1 + MAX_EARLIER
    assert len(lines(axes, GREY)) == 3  # as many ICE curves as the records have
    [now] = [line for line in axes.lines if line.get_marker() == "o"]
    assert np.asarray(now.get_xdata()).tolist() == GRID
    faded = [line.get_alpha() for line in axes.lines if line.get_zorder() == 4]
    assert len(set(faded)) == MAX_EARLIER


def test_the_features_are_in_the_order_of_their_importance_and_share_an_axis() -> None:
    figure = curves_figure(effects_of(view_of(6)))
    assert panels(figure)[:2] == ["f1", "f0"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


@pytest.mark.slow
def test_of_many_features_the_less_important_are_left_out_and_counted() -> None:
    figure = curves_figure(effects_of(view_of(100, long=True)))
    assert len(figure.axes) == MAX_PANELS
    assert f"The {100 - MAX_PANELS} less important features are left out" in written(figure)


def test_categories_are_named_and_not_joined() -> None:
    earlier = Curve(9, ["red", "blue"], [0.1, 0.2])
    now = Curve(19, ["red", "green"], [0.2, 0.4])
    figure = curves_figure([Effects("colour", [earlier, now])])
    [axes] = figure.axes
    assert all(line.get_linestyle() == "None" for line in axes.lines if len(line.get_xydata()) > 1)  # type: ignore[arg-type]
    assert {"red", "green", "blue"} <= set(written(figure).split())
    assert_readable(figure)


def test_many_categories_with_long_names_can_be_read() -> None:
    grid = [f"a category with a long name, number {i}" for i in range(100)]
    curve = Curve(9, [*grid], [i / 100 for i in range(100)])
    figure = curves_figure([Effects("x", [curve])] * 3)
    assert_readable(figure)


def test_with_several_classes_each_has_a_curve_and_a_name() -> None:
    curve = Curve(9, [*GRID], [[0.1] * 4, [0.2] * 4, [0.7] * 4], classes=["a", "b", "c"])
    figure = curves_figure([Effects("x", [curve, replace(curve, seq=19)])])
    for name, color, value in zip("abc", PALETTE, (0.1, 0.2, 0.7), strict=False):
        assert name in written(figure)
        assert [value] * 4 in lines(figure.axes[0], color)
    assert_readable(figure)


@pytest.mark.parametrize(
    ("grid", "errors", "is_drawn"),
    [
        ([1.0, 2.0, 4.0], [0.05, 0.1, 0.02], True),
        (["u", "v", "w"], [0.05, None, 0.02], True),
        ([1.0, 2.0, 4.0], None, False),
        ([1.0, 2.0, 4.0], [0.05, 0.1], False),
        ([1.0, 2.0, 4.0], [0.05, 0.1, 1e200], False),
        (["u", "v", "w"], [0.05, -0.1, 0.02], False),
    ],
)
def test_two_standard_errors_are_drawn_on_each_side_of_a_curve(
    grid: list[Value], errors: Any, is_drawn: bool
) -> None:
    curve = Curve(9, grid, [0.3, 0.5, 0.4], None, None, errors)
    axes = curves_figure([Effects("x", [curve])]).axes[0]
    drawn = [path for each in axes.collections for path in each.get_paths()]
    assert bool(drawn) == is_drawn
    if is_drawn:
        heights = np.concatenate([path.vertices for path in drawn])[:, 1]
        assert np.nanmin(heights) == pytest.approx(0.3 - 2.0 * 0.05)
        assert np.nanmax(heights) == pytest.approx(0.4 + 2.0 * 0.02 if None in errors else 0.7)


def test_a_feature_that_did_not_vary_is_a_dot() -> None:
    figure = curves_figure([Effects("x", [Curve(9, [2.5] * 4, [0.3] * 4)])])
    [line] = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert np.asarray(line.get_xydata()).tolist() == [[2.5, 0.3]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": [0.1, 0.2]},
        {"effect": [[0.1] * 4] * 2},
        {"effect": [[0.1] * 4, [0.2]], "classes": ["a", "b"]},
        {"effect": [1e200] * 4},
    ],
)
def test_what_is_no_curve_is_passed_over(wrong: dict[str, object]) -> None:
    records = [
        replace(record, **wrong) if isinstance(record, Explanation) else record  # type: ignore[arg-type]
        for record in explained(["f0"], ["ipdp"])
    ]
    assert effects_of(SelectedResults.of(records).view) == []


def test_a_pair_is_a_map_with_a_scale_and_its_names_on_the_axes() -> None:
    surface = Curve(9, [1.0, 2.0, 4.0], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], None, ["u", "v"])
    figure = surfaces_figure({"age|colour": surface, "a|b": surface})
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "colour")
    cells = np.asarray(axes.collections[0].get_array()).tolist()
    assert cells == [[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]]  # the second feature upwards
    assert "model's output" in written(figure)
    assert_readable(figure)


def test_pairs_are_no_curves() -> None:
    pair = [
        replace(record, feature="f0|f1", effect=[[0.1] * 2] * 4, second_grid=[0.0, 1.0])
        for record in explained(names(1), ["ipdp"])
        if isinstance(record, Explanation)
    ]
    view = SelectedResults.of(pair).view
    assert effects_of(view) == []
    assert view.curves["f0|f1"][-1].second_grid == [0.0, 1.0]
