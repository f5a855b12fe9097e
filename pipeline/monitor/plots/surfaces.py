"""The partial dependence of the model's output on two features together, as a map."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from pipeline.monitor.plots.effects import Floats, effect_of
from pipeline.monitor.plots.labels import shortened, wrapped
from pipeline.monitor.plots.points import Positions, number_points
from pipeline.monitor.plots.style import (
    MARGIN_IN,
    MUTED,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    WIDTH_IN,
    Picture,
    add_panel,
    heading,
    lines_in,
    new_figure,
    styled,
    title_piece,
    write,
)
from schemas.change import Curve

COLORS = "cividis"
"""Nuñez, Anderton, Renslow (2018): the same for all kinds of colour vision, and in grey."""

MAX_CELLS = 1_000
"""Cells drawn as shapes; more are drawn as an image."""


def surfaces_figure(
    surfaces: Mapping[str, Curve],
    *,
    title: str = "How the model's output depends on two features together",
    width_in: float = WIDTH_IN,
) -> Picture:
    """Return one map a pair; with more than two classes one a class. At most 12.

    Parameters
    ----------
    surfaces
        Pair, ``first|second``, → its surface; at least one.
    title
        The headline.
    width_in
        Of the figure, in inches; at least 4.
    """
    maps = [
        (pair if label is None else f"{pair}: {label}", pair, curve, effect)
        for pair, curve in surfaces.items()
        for label, effect in effect_of(curve).items()
    ][:MAX_MAPS]
    with styled():
        room = width_in - LEFT_IN - MARGIN_IN - RIGHT_IN
        columns = min(len(maps), max(1, int(room / 2.0)))
        rows = -(-len(maps) // columns)
        headline = wrapped(title, width_in - LEFT_IN - MARGIN_IN, TITLE_PT, bold=True)
        top = MARGIN_IN + lines_in(headline, TITLE_PT) + 0.3
        figure = new_figure(width_in, top + rows * (PANEL_IN + GAP_IN) + MARGIN_IN)
        write(figure, headline, left=LEFT_IN, top=MARGIN_IN, size=TITLE_PT, weight="bold")
        limits = surface_limits([effect for *_, effect in maps])
        pitch = (room + SPACE_IN) / columns
        for i, (name, pair, curve, effect) in enumerate(maps):
            row, column = divmod(i, columns)
            width = min(pitch - SPACE_IN, 1.6 * PANEL_IN)
            left, above = LEFT_IN + column * pitch, top + row * (PANEL_IN + GAP_IN)
            axes = add_panel(figure, left=left, top=above, width=width, height=PANEL_IN)
            first, _, second = pair.partition("|")
            draw_surface(axes, curve, effect, limits, names=(first, second))
            heading(axes, title_piece(name))
            if i == min(columns, len(maps)) - 1:
                _draw_scale(figure, axes, left=left + width + 0.12, top=above)
    return figure


LEFT_IN, RIGHT_IN, SPACE_IN, PANEL_IN, GAP_IN, MAX_MAPS = 0.68, 0.9, 0.6, 1.6, 0.75, 12


def surface_limits(effects: Sequence[Floats]) -> tuple[float, float]:
    """Return the smallest and the largest output of some maps, for a common scale."""
    return min(float(e.min()) for e in effects), max(float(e.max()) for e in effects)


def draw_surface(
    axes: Axes,
    curve: Curve,
    effect: Floats,
    limits: tuple[float, float],
    *,
    names: tuple[str, str],
) -> None:
    """Draw a map: the first feature from left to right, the second upwards."""
    across, up = Positions([curve.grid]), Positions([curve.second_grid or []])
    axes.pcolormesh(
        *(_edges(p.of(g)) for p, g in ((across, curve.grid), (up, curve.second_grid or []))),
        effect.T,
        cmap=COLORS,
        vmin=limits[0],
        vmax=limits[1],
        rasterized=effect.size > MAX_CELLS,
    )
    number_points(axes, across)
    number_points(axes, up, vertical=True)
    axes.set_xlabel(shortened(names[0], 1.4, TEXT_PT))
    axes.set_ylabel(shortened(names[1], 1.4, TEXT_PT))


def _edges(centres: Sequence[float]) -> Floats:
    """Return where the cells around some centres begin and end."""
    x = np.array(centres, np.float64)
    if len(x) == 1:
        return np.array([x[0] - 0.5, x[0] + 0.5])
    middles = (x[:-1] + x[1:]) / 2
    return np.concatenate([[2 * x[0] - middles[0]], middles, [2 * x[-1] - middles[-1]]])


def _draw_scale(figure: Picture, axes: Axes, *, left: float, top: float) -> None:
    scale = add_panel(figure, left=left, top=top, width=0.1, height=PANEL_IN)
    bar = figure.colorbar(axes.collections[0], cax=scale)
    bar.outline.set_visible(False)
    scale.set_ylabel("model's output", fontsize=SMALL_PT, color=MUTED)
