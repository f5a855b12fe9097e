"""Figure of importances over time, with uncertainty and changes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.text_fit import End, label_ends, short_names, text_width
from fluxplain.results.series import Points
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.wording import subject

PANEL_IN, GAP_IN, NAME_IN = 1.95, 0.42, 1.25
"""In inches: height of a panel; gap between panels; width for the longest name."""

LINE_POINTS, BACKGROUND_POINTS = 800, 200
"""Points of a coloured and of a grey line; a hundred grey ones make no file too large."""

IMPORTANT = 0.15
"""Share of the largest importance that a feature must reach in some method to be coloured."""

MAX_COLORED = int(PANEL_IN * 72 / (style.LINE * style.TEXT_PT)) - 1
"""Number of labels that fit beside a panel, besides the one for all other features."""


def importance_figure(
    view: StreamView,
    *,
    drift_seq: int | None = None,
    title: str = "What the model relies on",
    width_in: float = style.WIDTH_IN,
) -> style.Picture:
    """Return a figure with one panel per method: each feature's importance ± its standard error.

    Features that never matter much are grey. Triangles on the axis are detected changes; those at
    the top are changes of the loss, or of the share of wrong predictions.
    """
    methods = view.methods
    if not methods:
        raise ValueError("there are no explanations to plot")
    looks = feature_looks(view)
    names = short_names(looks, NAME_IN, style.TEXT_PT)
    losses = [change for change in view.changes if change.method == "loss"]
    body_in = PANEL_IN * len(methods) + GAP_IN * (len(methods) - 1)
    note = _note(looks, names, losses=losses)
    with style.styled():
        figure, top = style.titled_figure(width_in, title=title, note=note, body_in=body_in + 0.5)
        shown = [names[f] for f in looks if looks[f].important] + ["99 others"]
        names_in = max(text_width(name, style.TEXT_PT) for name in shown) + 0.28
        width = width_in - style.AXIS_IN - style.MARGIN_IN - names_in
        box = style.Box(style.AXIS_IN, top, width, body_in)
        panels = style.add_panels(figure, box, len(methods), gap=GAP_IN, sharex=True)
        for axes, method in zip(panels, methods, strict=True):
            _draw_panel(axes, view, method, looks, names)
            if drift_seq is not None:
                _mark_drift(axes, drift_seq, named=axes is panels[0])
        if losses:
            look: Any = {"marker": "v", "ms": 4, "mfc": style.PAPER, "mec": style.INK, "mew": 0.6}
            _mark(panels[0], [change.seq for change in losses], 0.965, **look)
        style.number_observations(panels[-1])
    return figure


def feature_looks(view: StreamView) -> dict[str, style.Look]:
    """Return the look of each feature; the most important come first.

    A feature's colour is the same in all panels, in other figures and on the dashboard's page.
    """
    shares = dict.fromkeys(view.features, 0.0)
    for method in view.methods:
        peaks = {f: _peak(each.points) for f, each in view.series[method].items()}
        largest = max(peaks.values()) or 1.0
        for feature, peak in peaks.items():
            shares[feature] = max(shares[feature], peak / largest)
    ranked = sorted(shares, key=lambda f: -shares[f])
    important = [feature for feature in ranked if shares[feature] >= IMPORTANT][:MAX_COLORED]
    looks = style.looks_of(important, view.places)
    return {feature: looks.get(feature, style.BACKGROUND) for feature in ranked}


def draw_trend(axes: Axes, points: Points, look: style.Look, *, z: float) -> None:
    """Draw one explanation over time, with a band of its standard error unless it is background."""
    n = len(points.seq)
    step = n // (LINE_POINTS if look.important else BACKGROUND_POINTS) + 1
    which = [*range(0, n - 1, step), *range(max(n - 1, 0), n)]
    seqs, values, errors = (column[which] for column in points)
    width = 1.3 if look.important else 0.6
    axes.plot(seqs, values, color=look.color, ls=look.dashes, lw=width, zorder=z)
    if look.important and n:
        axes.fill_between(
            seqs, values - errors, values + errors, color=look.color, alpha=0.18, lw=0, zorder=2
        )


def _peak(points: Points) -> float:
    """Return the level that an importance reaches for a tenth of the time, or at the end."""
    sizes = np.abs(_settled(points))
    return float(max(np.sort(sizes)[9 * len(sizes) // 10], sizes[-1]))


def _settled(points: Points) -> npt.NDArray[np.float64]:
    """Return the values without the first ones, which are means of few observations."""
    return points.value[len(points.value) // 20 :]


def _draw_panel(
    axes: Axes,
    view: StreamView,
    method: Method,
    looks: dict[str, style.Look],
    names: dict[str, str],
) -> None:
    info = METHODS[method]
    style.heading(axes, info.title, style.Piece(info.meaning))
    style.label_values(axes, f"importance [{info.unit}]")
    found = {feature: each.points for feature, each in view.series[method].items()}
    # the most important on top
    for z, (feature, look) in enumerate(reversed(looks.items())):
        if feature in found:
            draw_trend(axes, found[feature], look, z=3 + z)
    # fit the settled values and 0, with room for the markers below
    values = np.concatenate([[0.0], *map(_settled, found.values())])
    style.set_values(axes, values.tolist(), below=0.14, above=0.06)
    axes.set_xlim(*_seqs(view))
    style.number_values(axes)
    for change in view.drifts:
        if change.method == method and change.feature in looks:
            look = looks[change.feature]
            shape: Any = {"mfc": look.color, "mec": style.PAPER, "mew": 0.4}
            size, z = (5, 20) if look.important else (3, 19)
            _mark(axes, [change.seq], 0.035, marker="^", ms=size, z=z, **shape)
    ends = {f: float(points.value[-1]) for f, points in found.items()}
    label_ends(axes, _labels(ends, looks, names), size_pt=style.TEXT_PT)


def _seqs(view: StreamView) -> tuple[float, float]:
    """Return the range of observations to show: from 0, unless the log begins much later."""
    first, newest = view.span()
    newest = max(1, newest)
    return (0 if first < 0.1 * newest else first), max(newest, first + 1)


def _mark(axes: Axes, seqs: Sequence[int], height: float, *, z: float = 20, **marker: Any) -> None:
    """Mark changes at a height given as a share of the panel's."""
    heights, where = [height] * len(seqs), axes.get_xaxis_transform()
    axes.plot(seqs, heights, transform=where, ls="", zorder=z, clip_on=False, **marker)


def _labels(
    ends: dict[str, float], looks: dict[str, style.Look], names: dict[str, str]
) -> Iterable[End]:
    """Yield a label at the end of each line; several grey lines share one."""
    for feature, look in looks.items():
        if look.important and feature in ends:
            yield End(ends[feature], names[feature], look.text)
    grey = [feature for feature in looks if feature in ends and not looks[feature].important]
    if grey:
        mean = sum(ends[feature] / len(grey) for feature in grey)
        yield End(mean, names[grey[0]] if len(grey) == 1 else f"{len(grey)} others", style.MUTED)


def _mark_drift(axes: Axes, drift_seq: int, *, named: bool) -> None:
    low, high = axes.get_xlim()
    if not low <= drift_seq <= high:
        return
    axes.axvline(drift_seq, color=style.INK, lw=0.8, ls=(0, (4, 3)), zorder=1.5)
    if named:
        # below the marks of the loss
        style.name_line(axes, drift_seq, "drift", (3, -12), size=style.TEXT_PT)


def _note(looks: dict[str, style.Look], names: dict[str, str], *, losses: Sequence[Change]) -> str:
    grey = [names[feature] for feature in sorted(looks) if not looks[feature].important]
    subjects = dict.fromkeys(map(subject, losses))
    of_loss = f" ▽ of {' and '.join(subjects)}." if losses else ""
    note = f"▲ detected change.{of_loss} Bands: ± standard error."
    if len(grey) > 1:
        note += f" Grey: {', '.join(grey[:8])}{', …' if len(grey) > 8 else ''}."
    return note
