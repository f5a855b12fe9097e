"""Draws iPDP curves and surfaces into panels, also those before and after a change."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.text_fit import shortened, text_width
from fluxplain.results.pdp_history import Floats, drawable_curves, effect_of, errors_of
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Label, Value

COLORS = "cividis"
"""Colour map that reads alike for all kinds of colour vision, and in grey: Nuñez, Anderton, Renslow
(2018)."""

MAX_CELLS = 1_000
"""Most cells to draw as shapes; more become an image."""

ERRORS = 2.0
"""Standard errors on each side of an effect."""

ROOMY_IN = 2.6
"""Width in inches from which a panel has room for the seq of each curve."""

Looks = Mapping[Label | None, style.Look | None]
"""Class → look, or None to hide its curve; the key is None if there is only one output."""


def class_looks(labels: Sequence[Label]) -> dict[Label | None, style.Look]:
    """Return the look of each class's curve; the key None is for a single output."""
    return {
        None: style.LOOKS[0],
        **{c: style.LOOKS[i % len(style.LOOKS)] for i, c in enumerate(labels)},
    }


class Positions:
    """Positions of a feature's grid points on an axis."""

    def __init__(self, grids: Iterable[Sequence[Value]]) -> None:
        points = [point for grid in grids for point in grid]
        # grid points of a numeric feature are floats, since they are smoothed
        self.is_numeric = all(isinstance(point, float) for point in points)
        names = [] if self.is_numeric else dict.fromkeys(map(str, points))
        self._places = {category: float(i) for i, category in enumerate(names)}

    @property
    def categories(self) -> list[str]:
        """The category names on the axis; none for a numeric feature."""
        return list(self._places)

    def of(self, grid: Sequence[Value]) -> list[float]:
        """Return the position of each point."""
        if self.is_numeric:
            return [float(point) for point in grid]
        return [self._places[str(point)] for point in grid]


def draw_curve(
    axes: Axes,
    positions: Positions,
    curve: Curve,
    looks: Looks,
    *,
    alpha: float = 1.0,
    dashed: bool = False,
) -> None:
    """Draw the curve of each class with a look; mark the points unless the curve is faded.

    Where the standard errors are known, two of them are drawn on each side.
    """
    x = positions.of(curve.grid)
    if min(x) == max(x):  # a feature that did not vary
        x = x[:1]
    is_faded, errors = alpha < 1.0, errors_of(curve)
    for label, effect in effect_of(curve).items():
        look = looks.get(label)
        if look is None:
            continue
        common: Any = {
            "color": look.color,
            "mfc": style.PAPER if dashed else look.color,
            "alpha": alpha,
        }
        if positions.is_numeric:
            shape: Any = {
                "ls": (0, (3, 1.5)) if dashed else look.dashes,
                "lw": 0.9 if is_faded else 1.6,
                "marker": "" if is_faded and len(x) > 1 else "o",
                "ms": 2.8,
                "zorder": 4 if is_faded else 5,
            }
        else:
            mark, size = ("_", 9.0) if is_faded else ("o", 5.0)
            shape = {"ls": "", "marker": mark, "ms": size, "zorder": 5}
        axes.plot(x, effect[: len(x)], **common, **shape)
        if label in errors and not is_faded:
            error = ERRORS * errors[label][: len(x)]
            band: Any = {"color": look.color, "zorder": 3}
            if positions.is_numeric and len(x) > 1:
                axes.fill_between(x, effect - error, effect + error, alpha=0.15, lw=0, **band)
            else:
                axes.errorbar(x, effect[: len(x)], error, ls="", elinewidth=1.0, **band)


def number_points(axes: Axes, positions: Positions, *, vertical: bool = False) -> None:
    """Label an axis with as many of the feature's values as fit."""
    axis, length = (axes.yaxis if vertical else axes.xaxis), style.size_in(axes)[vertical]
    if positions.is_numeric:
        axis.set_major_locator(MaxNLocator(max(2, int(length / (0.35 if vertical else 0.6)))))
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        return
    names = positions.categories
    (axes.set_ylim if vertical else axes.set_xlim)(-0.6, len(names) - 0.4)
    widest = max(text_width(name[:50], style.SMALL_PT) for name in names)
    needed = 0.16 if vertical else 0.05 + min(0.6, widest)
    step = min(len(names), -(-int(1000 * needed * len(names) / length) // 1000) or 1)
    room = 0.45 if vertical else length * step / len(names) - 0.05
    places = range(step // 2, len(names), step)
    axis.set_ticks(places, labels=[shortened(names[i], room, style.SMALL_PT) for i in places])


def plain(value: float) -> str:
    """Format a number without an exponent, unless it is very large or small."""
    return f"{value:,.6g}" if value == 0 or 1e-4 <= abs(value) < 1e6 else f"{value:.3g}"


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


def draw_before_after(
    figure: Figure, change: Change, looks: tuple[style.Look, style.Look], box: style.Box
) -> None:
    """Draw a feature's curves into one panel, or a pair's surfaces into two.

    With more than two classes, draw the class whose curve moved most.
    """
    curves = drawable_curves(change)
    label = _moved_most([curve for _, curve in curves])
    if any(curve.second_grid for _, curve in curves):
        effects = [effect_of(curve)[label] for _, curve in curves]
        panels = style.add_panels(figure, box, 1, len(curves), space=0.2)
        for axes, (name, curve), effect in zip(panels, curves, effects, strict=True):
            draw_surface(axes, curve, effect, surface_limits(effects), pair=change.feature or "|")
            style.heading(axes, name)
            axes.label_outer()
        return
    [axes] = style.add_panels(figure, box)
    positions = Positions([curve.grid for _, curve in curves])
    pieces = []
    for name, curve in curves:
        look = looks[name == "after"]
        draw_curve(axes, positions, curve, {label: look}, dashed=name == "before")
        when = f" ({curve.seq:,})" if box.width > ROOMY_IN else ""
        pieces.append(style.Piece(f"{name}{when}", look.text, weight="bold"))
    style.heading(axes, "iPDP", *pieces)
    number_points(axes, positions)
    style.number_values(axes, 4)
    axes.set_xlabel(shortened(change.feature or "", box.width, style.TEXT_PT))
    of_class = "" if label is None else f" of class {shortened(str(label), 0.6, style.TEXT_PT)}"
    style.label_values(axes, f"model's output{of_class}")


def _moved_most(curves: list[Curve]) -> Label | None:
    """Return the class whose curve moved most; None if there are no classes."""
    effects = [effect_of(curve) for curve in curves]
    labels = [label for label in effects[0] if label in effects[-1]]

    def moved(label: Label | None) -> float:
        first, last = effects[0][label], effects[-1][label]
        if first.shape != last.shape or len(effects) == 1:
            return float(np.ptp(last))
        return float(np.abs(last - first).max())

    return max(labels, key=moved)
