"""Importances over time: colours, labels and marks."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from fluxplain.monitor.figures import importance_figure, save
from fluxplain.monitor.figures.importance_over_time import MAX_COLORED
from fluxplain.monitor.figures.style import GREY, LINE_STYLES, PALETTE
from fluxplain.results.selection import SelectedResults, Selection
from fluxplain.results.store import Store
from tests.kit.records import (
    STREAM,
    change,
    drifting_store,
    error_change,
    explanation,
    loss_change,
    store_of,
)
from tests.monitor.figures.layout import assert_readable, panels, written
from tests.monitor.figures.samples import names, stream_of


def figure_of(store: Store, drift_seq: int | None = 1000) -> Figure:
    return importance_figure(store.streams[STREAM].at(), drift_seq=drift_seq, title="a $title")


def texts(figure: Figure, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]


def notes(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def marks(figure: Figure, shape: str) -> list[list[tuple[float, str]]]:
    """Return the marks of a shape in each panel: seq and colour."""
    lines = [[line for line in axes.lines if line.get_marker() == shape] for axes in figure.axes]
    return [
        sorted(
            (float(seq), str(line.get_markerfacecolor()))
            for line in each
            for seq in np.asarray(line.get_xdata())
        )
        for each in lines
    ]


def test_one_panel_a_method_with_units() -> None:
    figure = figure_of(drifting_store())
    assert panels(figure) == ["iPFI", "iSAGE", "iPDP"]
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["importance [loss]", "importance [loss]", "importance [output]"]
    assert figure.axes[-1].get_xlabel() == "observations (seq)"
    only = figure_of(store_of([explanation("a", 5, 0.1, method="isage")]))
    assert panels(only) == ["iSAGE"]


def test_important_features_have_a_colour_and_a_label_and_the_others_share_grey() -> None:
    figure = figure_of(drifting_store())
    labels = texts(figure, 0)
    assert {"f0", "f1", "7 others"} <= set(labels)
    assert "f5" not in labels
    curves = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 100]  # type: ignore[arg-type]
    colors = [to_hex(str(line.get_color())).upper() for line in curves]
    assert sorted(colors) == sorted([PALETTE[0], PALETTE[1], *[GREY] * 7])
    assert "Grey: f2, f3, f4, f5, f6, f7, f8." in notes(figure)


def test_more_features_than_colours_differ_in_line_style() -> None:
    store = store_of(
        explanation(f"f{i}", seq, 0.5 - i / 100) for seq in (10, 20, 30) for i in range(12)
    )
    curves = [line for line in figure_of(store).axes[0].lines if len(line.get_xdata()) == 3]  # type: ignore[arg-type]
    looks = {(str(line.get_color()), line.is_dashed()) for line in curves}
    assert len(looks) == 12


def test_a_feature_keeps_its_colour_beside_others_and_as_on_the_page() -> None:
    records = [explanation(f"f{i}", seq, 0.5) for seq in (10, 20, 30) for i in range(12)]
    view = SelectedResults.of(records, Selection(features=frozenset({"f2", "f10"}))).view
    curves = [line for line in importance_figure(view).axes[0].lines if len(line.get_xdata()) == 3]  # type: ignore[arg-type]
    colors = {to_hex(str(line.get_color())).upper() for line in curves}
    assert colors == {PALETTE[2], PALETTE[10 % len(PALETTE)]}
    page = files("fluxplain.monitor.dashboard").joinpath("page/js/palette.js").read_text()
    assert [*map(str.upper, re.findall(r'"(#\w+)"', page.partition("DARK")[0]))] == [*PALETTE]


def test_no_more_features_are_coloured_than_there_are_looks_and_room_for_labels() -> None:
    assert 9 <= MAX_COLORED <= len(LINE_STYLES) * len(PALETTE)
    store = store_of(explanation(f"f{i:02}", 10, 0.5 - i / 1000) for i in range(30))
    figure = figure_of(store)
    labels = [text for text in figure.axes[0].texts if text.get_position()[0] == 1.025]
    assert len([text for text in labels if text.get_text().startswith("f")]) == MAX_COLORED
    assert f"{30 - MAX_COLORED} others" in texts(figure, 0)
    assert all(0 <= text.get_position()[1] <= 1.001 for text in labels)


def test_changes_are_marked_in_the_panel_and_colour_of_their_explanation() -> None:
    f0, f1, *_ = PALETTE
    assert marks(figure_of(drifting_store()), "^") == [
        [(500.0, f1), (1120.0, f0)],
        [(1070.0, f1), (1300.0, f1)],
        [],
    ]


def test_changes_of_the_loss_are_marked_at_the_top_and_explained_if_there_are_any() -> None:
    store = drifting_store()
    figure = figure_of(store)
    assert marks(figure, "v") == [[], [], []]
    assert "▽" not in notes(figure)
    for seq in (300, 1090):
        store.add(loss_change(seq))
    figure = figure_of(store)
    assert [[seq for seq, _ in each] for each in marks(figure, "v")] == [[300, 1090], [], []]
    assert "▽ of the loss." in notes(figure)
    store.add(error_change(1200))
    assert "▽ of the loss and the share of wrong predictions." in notes(figure_of(store))


def test_the_drift_is_marked_only_if_there_is_one() -> None:
    assert "drift" in texts(figure_of(drifting_store()), 0)
    assert "drift" not in texts(figure_of(drifting_store(), None), 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n", "width"), [(6, 4.0), (6, 7.2), (100, 5.0), (100, 7.2)])
def test_all_text_can_be_read(n: int, width: float) -> None:
    store = store_of(stream_of(n, long=n == 100))
    figure = importance_figure(store.streams[STREAM].at(), drift_seq=1500, width_in=width)
    assert_readable(figure)
    assert f"{n - 2} others" in written(figure)
    assert figure.get_figwidth() == width


def test_names_of_lines_that_end_together_keep_apart() -> None:
    store = store_of(
        explanation(f"f{i}", seq, 0.5 + i / 1000) for seq in (10, 20, 30) for i in range(9)
    )
    figure = figure_of(store)
    assert_readable(figure)
    assert set(names(9)) <= set(texts(figure, 0))


def test_a_single_point_can_be_drawn(tmp_path: Path) -> None:
    store = store_of([explanation("a", 5, 0.0, std_error=0.0), change("gone", 7)])
    save(figure_of(store), tmp_path / "one.png", dpi=50)
    assert (tmp_path / "one.png").stat().st_size > 1000


def test_nothing_to_plot_is_an_error() -> None:
    with pytest.raises(ValueError, match="no explanations to plot"):
        figure_of(store_of([change("a", 7)]))
