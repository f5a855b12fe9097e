"""Figures of iPDP: curves now and earlier with ICE curves, and surfaces of pairs as maps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.curve_panels import (
    ERRORS,
    Looks,
    Positions,
    class_looks,
    draw_curve,
    draw_surface,
    number_points,
    surface_limits,
)
from fluxplain.monitor.figures.text_fit import short_names, shortened, text_width
from fluxplain.results.pdp_history import effect_of, errors_of
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import METHOD_NAMES, METHODS
from fluxplain.schemas.record import Label
from fluxplain.schemas.wording import measured

MAX_EARLIER = 6
"""Most earlier curves in a panel; more could not be distinguished."""

MAX_ICE = 50

MAX_PANELS = 20

MAX_MAPS = 12

NAME_SHARE = 0.7
"""Share of a panel's width for the name; the importance is left out if it does not fit then."""

PANEL_IN, GAP_IN, SPACE_IN, NARROWEST_IN = 1.35, 0.62, 0.18, 1.55
"""In inches: height of a panel; vertical and horizontal gap; narrowest panel including the gap."""

SCALE_IN, MAP_SPACE_IN, MAP_IN, MAP_GAP_IN = 0.9, 0.6, 1.6, 0.75
"""In inches: width for the scale of maps; horizontal gap; height of a map; vertical gap."""


@dataclass(frozen=True, slots=True)
class Effects:
    """One feature's curves over time, its ICE curves, and its current importance as text."""

    feature: str
    curves: Sequence[Curve]
    ice: Sequence[Curve] = ()
    importance: str = ""

    @property
    def now(self) -> Curve:
        """The newest curve."""
        return self.curves[-1]

    @property
    def earlier(self) -> list[Curve]:
        """Some of the earlier curves with the same classes, evenly spaced."""
        before = [curve for curve in self.curves[:-1] if curve.classes == self.now.classes]
        n = min(len(before), MAX_EARLIER)
        return [before[int((i + 0.5) * len(before) / n)] for i in range(n)]

    @property
    def recent(self) -> Sequence[Curve]:
        """ICE curves of the last observations; none if there is a curve per class."""
        return [] if self.now.classes else self.ice[-MAX_ICE:]


def effects_of(view: StreamView, *, features: Iterable[str] | None = None) -> list[Effects]:
    """Return the effects of all features with curves, the most important first; no pairs."""
    wanted = None if features is None else set(features)
    found = [view.newest(method) for method in view.methods if METHODS[method].is_curve]
    newest = {feature: estimate for each in found for feature, estimate in each.items()}
    curves = {
        feature: [curve for curve in found if curve.second_grid is None]
        for feature, found in view.curves.items()
        if feature in newest and found[-1].second_grid is None and feature in (wanted or newest)
    }
    scale = max((abs(newest[feature].value) for feature in curves), default=0.0)
    texts = {f: measured(newest[f].value, newest[f].std_error, scale) for f in curves}
    ranked = sorted(curves, key=lambda feature: -newest[feature].value)
    return [Effects(f, curves[f], view.ice(f), texts[f]) for f in ranked]


def curves_figure(
    effects: Sequence[Effects], *, title: str | None = None, width_in: float = style.WIDTH_IN
) -> style.Picture:
    """Return a figure with one panel per feature: current iPDP, fading earlier ones, ICE curves.

    All panels have the same vertical axis, so that effects can be compared. Dots are grid points;
    categories are not connected, since nothing lies between them. With more than two classes each
    class has a curve, and there are no ICE curves.
    """
    shown = effects[:MAX_PANELS]
    labels = list(dict.fromkeys(c for each in shown for c in each.now.classes or ()))
    looks = class_looks(labels)
    room = width_in - style.AXIS_IN - style.MARGIN_IN
    columns = _columns(len(shown), room)
    rows = -(-len(shown) // columns)
    height = rows * ((PANEL_IN if len(shown) > 1 else 2 * PANEL_IN) + GAP_IN) - GAP_IN
    legend_in = 0.2 if labels else 0.0
    if title is None:
        one = shown[0].feature if len(shown) == 1 else "each feature"
        title = f"How the model's output depends on {one}"
    with style.styled():
        figure, top = style.titled_figure(
            width_in, title=title, note=_note(shown, len(effects)), body_in=legend_in + height + 0.4
        )
        _name_classes(figure, labels, looks, top=top - 0.25, room=room)
        box = style.Box(style.AXIS_IN, top + legend_in, room, height)
        panels = style.add_panels(
            figure, box, rows, columns, gap=GAP_IN, space=SPACE_IN, sharey=True
        )
        for axes in panels[len(shown) :]:
            axes.remove()
        for axes, each in zip(panels, shown, strict=False):
            _draw_panel(axes, each, looks)
        style.set_values(panels[0], _numbers(shown), below=0.05, above=0.05)
        for axes in figure.axes:
            style.number_values(axes, 4)
        for axes in panels[::columns]:
            style.label_values(axes, "model's output")
    return figure


def surfaces_of(view: StreamView) -> dict[str, Curve]:
    """Return pair → its newest surface."""
    return {pair: found[-1] for pair, found in view.curves.items() if found[-1].second_grid}


def surfaces_figure(
    surfaces: Mapping[str, Curve],
    *,
    title: str = "How the model's output depends on two features together",
    width_in: float = style.WIDTH_IN,
) -> style.Picture:
    """Return a figure with at most 12 maps: one per pair or, with several classes, per class."""
    maps = [
        (pair if label is None else f"{pair}: {label}", pair, curve, effect)
        for pair, curve in surfaces.items()
        for label, effect in effect_of(curve).items()
    ][:MAX_MAPS]
    room = width_in - style.AXIS_IN - style.MARGIN_IN - SCALE_IN
    columns = min(len(maps), max(1, int(room / 2.0)))
    rows = -(-len(maps) // columns)
    height = rows * (MAP_IN + MAP_GAP_IN)
    width = min(room, columns * (1.6 * MAP_IN + MAP_SPACE_IN) - MAP_SPACE_IN)
    with style.styled():
        figure, top = style.titled_figure(width_in, title=title, note="", body_in=height)
        limits = surface_limits([effect for *_, effect in maps])
        box = style.Box(style.AXIS_IN, top, width, height - MAP_GAP_IN)
        panels = style.add_panels(figure, box, rows, columns, gap=MAP_GAP_IN, space=MAP_SPACE_IN)
        for axes in panels[len(maps) :]:
            axes.remove()
        for axes, (name, pair, curve, effect) in zip(panels, maps, strict=False):
            draw_surface(axes, curve, effect, limits, pair=pair)
            style.heading(axes, name)
        scale = style.Box(style.AXIS_IN + width + 0.12, top, 0.1, MAP_IN)
        _draw_scale(figure, panels[0], scale)
    return figure


def _columns(panels: int, room: float) -> int:
    columns = min(panels, max(1, int(room / NARROWEST_IN)))
    if panels > columns:  # avoid a last row with a single panel
        columns = min(range(max(2, columns - 1), columns + 1), key=lambda n: -panels % n)
    return columns


def _draw_panel(axes: Axes, each: Effects, looks: Looks) -> None:
    width = style.size_in(axes)[0]
    name = shortened(each.feature, NAME_SHARE * width, style.HEADING_PT, bold=True)
    style.heading(axes, name, style.Piece(each.importance, size=style.SMALL_PT))
    grids = [curve.grid for curve in (each.now, *each.earlier, *each.recent)]
    positions = Positions(grids)
    shape: Any = {"ls": "-", "marker": ""} if positions.is_numeric else {"ls": "", "marker": "."}
    for ice in each.recent:
        x, [y] = positions.of(ice.grid), effect_of(ice).values()
        axes.plot(x, y, lw=0.4, ms=1.5, color=style.GREY, alpha=0.7, zorder=3, **shape)
    for age, curve in enumerate(reversed(each.earlier)):
        draw_curve(axes, positions, curve, looks, alpha=0.6 * 0.75**age)
    draw_curve(axes, positions, each.now, looks)
    number_points(axes, positions)


def _numbers(shown: Sequence[Effects]) -> Iterator[float]:
    for each in shown:
        for curve in (each.now, *each.earlier, *each.recent):
            for effect in effect_of(curve).values():
                yield from effect.tolist()
        effects = effect_of(each.now)
        for label, errors in errors_of(each.now).items():
            known = ERRORS * np.nan_to_num(errors)
            yield from (effects[label] - known).tolist()
            yield from (effects[label] + known).tolist()


def _name_classes(
    figure: style.Picture,
    labels: Sequence[Label],
    looks: dict[Label | None, style.Look],
    *,
    top: float,
    room: float,
) -> None:
    names = short_names(map(str, labels), 1.0, style.TEXT_PT)
    left = style.AXIS_IN
    for label in labels:
        name = names[str(label)]
        width = text_width(name, style.TEXT_PT, bold=True) + 0.15
        if left + width > style.AXIS_IN + room:
            return
        style.write(figure, name, left=left, top=top, color=looks[label].text, weight="bold")
        left += width


def _note(shown: Sequence[Effects], total: int) -> str:
    seqs = sorted({curve.seq for each in shown for curve in each.earlier})
    newest = max(each.now.seq for each in shown)
    when = "now" if newest < 0 else f"at seq {newest:,}"
    note = f"{METHOD_NAMES['ipdp']} {when}; dots: grid points."
    if seqs:
        note += f" Fading: earlier curves, from seq {seqs[0]:,} on."
    if most := max(len(each.recent) for each in shown):
        note += f" Grey: ICE curves of the last {most} observations."
    if any(each.importance for each in shown):
        note += " Numbers: importance ± standard error."
    if total > len(shown):
        note += f" The {total - len(shown):,} less important features are left out."
    return note


def _draw_scale(figure: style.Picture, axes: Axes, box: style.Box) -> None:
    [scale] = style.add_panels(figure, box)
    bar = figure.colorbar(axes.collections[0], cax=scale)
    bar.outline.set_visible(False)
    scale.set_ylabel("model's output", fontsize=style.SMALL_PT, color=style.MUTED)
