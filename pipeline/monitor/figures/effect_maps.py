"""Figure of iPDP surfaces of pairs, as maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.curve_panels import Floats, Positions, effect_of, number_points
from fluxplain.monitor.figures.text_fit import shortened
from fluxplain.schemas.change import Curve

COLORS = "cividis"
"""Colour map that reads alike for all kinds of colour vision, and in grey: Nuñez, Anderton, Renslow
(2018)."""

MAX_CELLS = 1_000
"""Most cells to draw as shapes; more become an image."""

MAX_MAPS = 12

RIGHT_IN, SPACE_IN, PANEL_IN, GAP_IN = 0.9, 0.6, 1.6, 0.75
"""In inches: width for the scale; horizontal gap; height of a map; vertical gap."""


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
    room = width_in - style.AXIS_IN - style.MARGIN_IN - RIGHT_IN
    columns = min(len(maps), max(1, int(room / 2.0)))
    body_in = -(-len(maps) // columns) * (PANEL_IN + GAP_IN)
    with style.styled():
        figure, top = style.titled_figure(width_in, title=title, note="", body_in=body_in)
        limits = surface_limits([effect for *_, effect in maps])
        pitch = (room + SPACE_IN) / columns
        width = min(pitch - SPACE_IN, 1.6 * PANEL_IN)
        for i, (name, pair, curve, effect) in enumerate(maps):
            row, column = divmod(i, columns)
            left, above = style.AXIS_IN + column * pitch, top + row * (PANEL_IN + GAP_IN)
            axes = style.add_panel(figure, style.Box(left, above, width, PANEL_IN))
            draw_surface(axes, curve, effect, limits, pair=pair)
            style.heading(axes, name)
            if i == columns - 1:
                _draw_scale(figure, axes, left=left + width + 0.12, top=above)
    return figure


def surface_limits(effects: Sequence[Floats]) -> tuple[float, float]:
    """Return the smallest and largest output of some maps, for a common scale."""
    return min(float(e.min()) for e in effects), max(float(e.max()) for e in effects)


def draw_surface(
    axes: Axes, curve: Curve, effect: Floats, limits: tuple[float, float], *, pair: str
) -> None:
    """Draw a map: the first feature from left to right, the second upwards."""
    first, _, second = pair.partition("|")
    second_grid = curve.second_grid or []
    across, up = Positions([curve.grid]), Positions([second_grid])
    edges = _edges(across.of(curve.grid)), _edges(up.of(second_grid))
    look: Any = {"cmap": COLORS, "vmin": limits[0], "vmax": limits[1]}
    axes.pcolormesh(*edges, effect.T, rasterized=effect.size > MAX_CELLS, **look)
    number_points(axes, across)
    number_points(axes, up, vertical=True)
    axes.set_xlabel(shortened(first, 1.4, style.TEXT_PT))
    axes.set_ylabel(shortened(second, 1.4, style.TEXT_PT))


def _edges(centres: Sequence[float]) -> Floats:
    """Return the edges of cells around the given centres."""
    x = np.array(centres, np.float64)
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middles = (x[:-1] + x[1:]) / 2
    return np.concatenate([[2 * x[0] - middles[0]], middles, [2 * x[-1] - middles[-1]]])


def _draw_scale(figure: style.Picture, axes: Axes, *, left: float, top: float) -> None:
    scale = style.add_panel(figure, style.Box(left, top, 0.1, PANEL_IN))
    bar = figure.colorbar(axes.collections[0], cax=scale)
    bar.outline.set_visible(False)
    scale.set_ylabel("model's output", fontsize=style.SMALL_PT, color=style.MUTED)
