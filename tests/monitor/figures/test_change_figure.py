"""One change in one picture: its panels, means and moves, and that all text can be read."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fluxplain.monitor.figures import story_figure
from fluxplain.monitor.figures.contributions import MAX_ROWS, rows_of
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selection import SelectedResults
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from tests.kit.records import prediction
from tests.monitor.figures.layout import assert_readable, panels, texts_of, written
from tests.monitor.figures.samples import (
    DRIFT,
    GRID,
    changes_of,
    drift_of,
    drift_of_errors,
    drift_of_loss,
    explained,
    names,
    stream_of,
)


def context_of(change: Change, n: int = 6) -> ChangeContext:
    context = ChangeContext(change)
    SelectedResults.of(stream_of(n), contexts=[context])
    return context


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("n", "widths"),
    [
        (6, [5.0, 12.0]),
        (30, [7.2]),
        pytest.param(6, [7.2], marks=pytest.mark.slow),
        pytest.param(30, [5.0, 12.0], marks=pytest.mark.slow),
    ],
)
def test_all_text_can_be_read(n: int, widths: list[float]) -> None:
    contexts = [ChangeContext(change) for change in changes_of(n, long=n == 30)]
    SelectedResults.of(stream_of(n, long=n == 30), contexts=contexts)
    for context, width in itertools.product(contexts, widths):
        assert_readable(story_figure(context, width_in=width))


def test_one_picture_has_importance_loss_curves_and_moves() -> None:
    figure = story_figure(context_of(drift_of("f0")))
    assert panels(figure) == ["iSAGE of f0", "Loss of the model", "iPDP", "iSAGE"]
    text = written(figure)
    for part in (
        "What changed: iSAGE of f0, detected at seq 1,700",
        drift_of("f0").detail,
        f"change {drift_of('f0').id}",
        f"incident features-0@{DRIFT + 150}",
        "to replay: 1,300 to 1,700",
        "before 0.300 ±0.010",
        "after 0.020 ±0.020",
        "before 0.600",
        "after 0.610",
        "before (1,499)",
        "after (1,699)",
    ):
        assert part in text


def test_the_means_stand_where_they_are_about() -> None:
    axes = story_figure(context_of(drift_of("f0"))).axes[0]
    thick = [line for line in axes.lines if line.get_linewidth() == 2.2]
    spans = [np.asarray(line.get_xydata()).tolist() for line in thick]
    assert spans == [[[500, 0.3], [DRIFT, 0.3]], [[DRIFT, 0.02], [DRIFT + 200, 0.02]]]
    assert axes.get_xlim() == (500, 2700)
    low, high = axes.get_ylim()
    [label] = [text for text in axes.texts if text.get_text().startswith("before 0.300")]
    assert label.get_position()[1] == pytest.approx((0.3 - low) / (high - low))


def test_the_shares_of_isage_are_steps_from_the_sum_before_to_the_sum_after() -> None:
    method, rows = rows_of(context_of(drift_of("f0", "ipfi")))
    assert method == "isage"
    assert [row.name for row in rows[:2]] == ["f1", "f0"]
    assert all(second.begin == first.end for first, second in itertools.pairwise(rows))
    figure = story_figure(context_of(drift_of("f0", "ipfi")))
    bars = [[bar.get_x(), bar.get_width()] for bar in figure.axes[-1].patches]  # type: ignore[attr-defined]
    assert bars == [[row.begin, pytest.approx(row.end - row.begin)] for row in rows]
    signs = [text for text, _ in texts_of(figure) if text[0] in "+−" and "." in text]
    assert signs[:2] == ["+0.290", "−0.280"]


def test_of_many_features_the_smaller_moves_are_one_step() -> None:
    _, rows = rows_of(context_of(drift_of("f0"), 30))
    assert len(rows) == MAX_ROWS + 1
    assert rows[-1].name == f"{30 - MAX_ROWS} others"


def test_without_isage_the_means_of_the_changed_method_stand_for_themselves() -> None:
    context = ChangeContext(drift_of("f0", "ipfi"))
    SelectedResults.of(explained(names(6), ["ipfi", "ipdp"]), contexts=[context])
    method, rows = rows_of(context)
    assert method == "ipfi"
    assert {row.name: round(row.begin, 1) for row in rows}["f0"] == 0.3
    assert not any(row.is_step for row in rows)
    assert_readable(story_figure(context))


def test_of_a_change_of_the_loss_the_loss_is_shown() -> None:
    figure = story_figure(context_of(drift_of_loss()))
    assert panels(figure) == ["Loss of the model", "iSAGE"]
    assert "What changed: loss of the model" in written(figure)


def test_of_a_change_of_the_errors_their_share_and_the_loss_are_shown() -> None:
    context = ChangeContext(drift_of_errors())
    for seq in range(DRIFT - 64, DRIFT + 64):
        context.add(prediction(seq, correct=seq < DRIFT))
    figure = story_figure(context)
    assert panels(figure) == ["The share of wrong predictions", "Loss of the model"]
    means = {middle: moments.mean for middle, moments in context.increments}
    assert all(mean == (middle > DRIFT) for middle, mean in means.items())
    assert len(means) > 1
    assert "What changed: wrong predictions of the model" in written(figure)
    assert_readable(figure)


def test_what_is_not_known_is_left_out() -> None:
    bare = Change.notice(kind="gap", stream="features-0", seq=7, detail="", feature="f0")
    bare = replace(bare, kind="drift", method="ipfi", before=0.1, after=0.2)
    figure = story_figure(ChangeContext(bare))
    assert panels(figure) == ["iPFI of f0"]
    assert_readable(figure)


def test_of_several_classes_the_curve_that_moved_most_is_shown() -> None:
    flat, steep = [0.3] * 4, [0.1, 0.2, 0.3, 0.4]
    change = replace(
        drift_of("f0"),
        curve_before=Curve(9, [*GRID], [flat, flat, flat], classes=["a", "b", "c"]),
        curve_after=Curve(19, [*GRID], [flat, steep, flat], classes=["a", "b", "c"]),
    )
    figure = story_figure(context_of(change))
    assert "model's output of class b" in written(figure)
    curves = [np.asarray(line.get_ydata()).tolist() for line in figure.axes[2].lines]
    assert [flat, steep] == [curve for curve in curves if len(curve) == 4]


def test_curves_of_other_classes_than_before_are_shown_alone() -> None:
    change = replace(
        drift_of("f0"),
        curve_before=Curve(9, [*GRID], [[0.1] * 4] * 3, classes=["a", "b", "c"]),
        curve_after=Curve(19, [*GRID], [0.1] * 4),
    )
    text = written(story_figure(context_of(change)))
    assert "after (19)" in text
    assert "before (9)" not in text


def test_of_a_pair_both_maps_are_shown() -> None:
    surface = Curve(9, [0.0, 1.0], [[0.1, 0.2], [0.3, 0.4]], None, [5.0, 6.0])
    change = replace(drift_of("f0|f1", "ipdp"), curve_before=surface, curve_after=surface)
    figure = story_figure(context_of(change))
    assert panels(figure)[2:] == ["before", "after", "iSAGE"]
    assert_readable(figure)
