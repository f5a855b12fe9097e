"""The importance of each feature over time, with its uncertainty and the changes."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from pipeline.monitor.history import History, Point, StreamHistory
from pipeline.monitor.plots.labels import (
    End,
    label_ends,
    short_names,
    text_width,
    wrapped,
)
from pipeline.monitor.plots.looks import PANEL_IN, feature_looks, points_of, settled
from pipeline.monitor.plots.saving import DPI, save
from pipeline.monitor.plots.style import (
    INK,
    MARGIN_IN,
    MUTED,
    PAPER,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    WIDTH_IN,
    Look,
    Picture,
    Piece,
    add_panel,
    heading,
    lines_in,
    new_figure,
    number_observations,
    number_values,
    size_in,
    styled,
    title_piece,
    write,
)
from schemas.change import METHOD_NAMES
from schemas.explanation import Method

GAP_IN, LEFT_IN, NAME_IN = 0.42, 0.68, 1.25
"""Between two panels; left of them; and the longest name beside one."""

QUANTITIES: dict[Method, tuple[str, str]] = {
    "ipfi": ("loss added by replacing the feature at random", "importance [loss]"),
    "isage": ("the feature's share in the loss reduction", "importance [loss]"),
    "ipdp": ("how far the output moves with the feature", "importance [output]"),
}


LINE_POINTS, BACKGROUND_POINTS = 800, 200
"""Points of a line, and of a grey one: a hundred of these make no file too large."""


def plot_importances(
    history: History,
    path: Path,
    *,
    drift_seq: int | None = None,
    title: str = "What the model relies on",
    stream: str | None = None,
    dpi: int = DPI,
) -> None:
    """Write the figure of :func:`importance_figure` to a file: PNG, SVG or PDF.

    Parameters
    ----------
    history
        What has been published.
    path
        The file to write.
    drift_seq, title
        As for :func:`importance_figure`.
    stream
        Which stream; None for one that has new data.
    dpi
        Pixels per inch, of PNG.

    Raises
    ------
    ValueError
        If the history has no explanations of the stream.
    """
    name = stream or history.current
    state = history.streams.get(name) if name is not None else None
    if state is None or not state.latest:
        raise ValueError(f"there are no explanations of stream {name!r} to plot")
    save(importance_figure(state, drift_seq=drift_seq, title=title), path, dpi=dpi)


def importance_figure(
    state: StreamHistory,
    *,
    drift_seq: int | None = None,
    title: str = "What the model relies on",
    width_in: float = WIDTH_IN,
) -> Picture:
    """Return one panel a method: the importance of each feature ± its standard error, over time.

    Features that matter little throughout are grey. Triangles on the axis are detected changes, and
    those at the top changes of the loss.

    Parameters
    ----------
    state
        What is known of the stream; it must have an explanation.
    drift_seq
        Where the stream is known to change: a dashed line, if that is in sight; None for none.
    title
        The headline.
    width_in
        Of the figure, in inches; at least 4.
    """
    methods = state.methods
    looks = feature_looks(state)
    names = short_names(looks, NAME_IN, TEXT_PT)
    losses = [change.seq for change in state.changes if change.method == "loss"]
    with styled():
        room = width_in - LEFT_IN - MARGIN_IN
        note = wrapped(_note(looks, names, losses=bool(losses)), room, SMALL_PT)
        headline = wrapped(title, room, TITLE_PT, bold=True)
        note_in = lines_in(note, SMALL_PT)
        top = MARGIN_IN + lines_in(headline, TITLE_PT) + 0.3
        panels_in = PANEL_IN * len(methods) + GAP_IN * (len(methods) - 1)
        figure = new_figure(width_in, top + panels_in + 0.5 + note_in + MARGIN_IN)
        write(figure, headline, left=LEFT_IN, top=MARGIN_IN, size=TITLE_PT, weight="bold")
        shown = [names[f] for f in looks if looks[f].important] + ["99 others"]
        names_in = max(text_width(name, TEXT_PT) for name in shown) + 0.28
        first: Axes | None = None
        for method in methods:
            axes = add_panel(
                figure,
                left=LEFT_IN,
                top=top,
                width=room - names_in,
                height=PANEL_IN,
                sharex=first,
            )
            first = first or axes
            _draw_panel(axes, state, method, looks, names)
            if drift_seq is not None:
                _mark_drift(axes, drift_seq, named=axes is first)
            top += PANEL_IN + GAP_IN
        if first is not None and losses:
            _mark_losses(first, losses)
        for axes in figure.axes[:-1]:
            axes.tick_params(labelbottom=False)
        number_observations(figure.axes[-1])
        write(figure, note, left=LEFT_IN, top=top - GAP_IN + 0.5, size=SMALL_PT, color=MUTED)
    return figure


def _draw_panel(
    axes: Axes,
    state: StreamHistory,
    method: Method,
    looks: dict[str, Look],
    names: dict[str, str],
) -> None:
    meaning, unit = QUANTITIES[method]
    heading(axes, title_piece(METHOD_NAMES[method]), Piece(meaning))
    axes.set_ylabel(unit)
    axes.yaxis.set_label_coords(-0.47 / size_in(axes)[0], 0.5)
    # the most important on top
    for z, (feature, look) in enumerate(reversed(looks.items())):
        draw_course(axes, points_of(state, feature, method), look, z=3 + z)
    axes.set_ylim(*_limits(state, method))
    axes.set_xlim(*_seqs(state))
    number_values(axes)
    _mark_changes(axes, state, method, looks)
    label_ends(axes, _ends(state, method, looks, names), size_pt=TEXT_PT, height_in=PANEL_IN)


def draw_course(axes: Axes, points: Sequence[Point], look: Look, *, z: float = 3) -> None:
    """Draw one explanation over time; its standard error is a band, unless it is background."""
    step = len(points) // (LINE_POINTS if look.important else BACKGROUND_POINTS) + 1
    if step > 1:
        points = [*points[:-1:step], points[-1]]
    seqs = [point.seq for point in points]
    values = np.array([point.value for point in points])
    width = 1.3 if look.important else 0.6
    axes.plot(seqs, values, color=look.color, ls=look.dashes, lw=width, zorder=z)
    if look.important and points:
        errors = np.array([point.std_error for point in points])
        axes.fill_between(
            seqs, values - errors, values + errors, color=look.color, alpha=0.18, lw=0, zorder=2
        )


def _seqs(state: StreamHistory) -> tuple[float, float]:
    """Return which observations to show; from the first one on, unless the log begins later."""
    first = min(series.points[0].seq for series in state.series.values())
    newest = max(1, state.newest_seq)
    return (0 if first < 0.1 * newest else first), max(newest, first + 1)


def _limits(state: StreamHistory, method: Method) -> tuple[float, float]:
    """Return the range of the settled values and 0, with room for the markers below."""
    values = [p.value for f in state.features for p in settled(state, f, method)]
    low, high = min([0.0, *values]), max([0.0, *values])
    extent = (high - low) or 1.0
    return low - 0.14 * extent, high + 0.06 * extent


def _mark_changes(axes: Axes, state: StreamHistory, method: Method, looks: dict[str, Look]) -> None:
    for change in state.changes:
        if change.kind != "drift" or change.method != method or change.feature not in looks:
            continue
        look = looks[change.feature]
        axes.plot(
            [change.seq],
            [0.035],
            transform=axes.get_xaxis_transform(),
            ls="",
            marker="^",
            ms=5 if look.important else 3,
            mfc=look.color,
            mec=PAPER,
            mew=0.4,
            zorder=20 if look.important else 19,
            clip_on=False,
        )


def _mark_losses(axes: Axes, seqs: Sequence[int]) -> None:
    axes.plot(
        seqs,
        [0.965] * len(seqs),
        transform=axes.get_xaxis_transform(),
        ls="",
        marker="v",
        ms=4,
        mfc=PAPER,
        mec=INK,
        mew=0.6,
        zorder=20,
        clip_on=False,
    )


def _ends(
    state: StreamHistory, method: Method, looks: dict[str, Look], names: dict[str, str]
) -> Iterable[End]:
    """Return each name beside the end of its line; the grey ones together, if there are several."""
    ends = {f: points[-1].value for f in looks if (points := points_of(state, f, method))}
    for feature, value in ends.items():
        if looks[feature].important:
            yield End(value, names[feature], looks[feature].text)
    grey = [feature for feature in ends if not looks[feature].important]
    if grey:
        mean = sum(ends[feature] / len(grey) for feature in grey)
        yield End(mean, names[grey[0]] if len(grey) == 1 else f"{len(grey)} others", MUTED)


def _mark_drift(axes: Axes, drift_seq: int, *, named: bool) -> None:
    low, high = axes.get_xlim()
    if not low <= drift_seq <= high:
        return
    axes.axvline(drift_seq, color=INK, lw=0.8, ls=(0, (4, 3)), zorder=1.5)
    if named:
        axes.annotate(
            "drift",
            (drift_seq, 1),
            xytext=(3, -12),  # below the marks of the loss
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            fontsize=TEXT_PT,
            color=INK,
            va="top",
            bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )


def _note(looks: dict[str, Look], names: dict[str, str], *, losses: bool) -> str:
    grey = [names[feature] for feature in sorted(looks) if not looks[feature].important]
    of_loss = " ▽ of the loss." if losses else ""
    note = f"▲ detected change.{of_loss} Bands: ± standard error."
    if len(grey) > 1:
        note += f" Grey: {', '.join(grey[:8])}{', …' if len(grey) > 8 else ''}."
    return note
