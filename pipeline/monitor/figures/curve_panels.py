"""Draws one iPDP curve into a panel, and the axis of its points."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.text_fit import shortened, text_width
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Label, Value

Floats = npt.NDArray[np.float64]

Looks = Mapping[Label | None, style.Look | None]
"""Class → look, or None to hide its curve; the key is None if there is only one output."""


def effect_of(curve: Curve) -> dict[Label | None, Floats]:
    """Return class → effect; the key is None if there is only one output."""
    effect = np.array(curve.effect, np.float64)
    return dict(zip(curve.classes, effect, strict=True)) if curve.classes else {None: effect}


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
    """Draw the curve of each class with a look; mark the points unless the curve is faded."""
    x = positions.of(curve.grid)
    if min(x) == max(x):  # a feature that did not vary
        x = x[:1]
    is_faded = alpha < 1.0
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


def number_points(axes: Axes, positions: Positions, *, vertical: bool = False) -> None:
    """Label an axis with as many of the feature's values as fit."""
    axis, length = (axes.yaxis if vertical else axes.xaxis), style.size_in(axes)[vertical]
    if positions.is_numeric:
        axis.set_major_locator(MaxNLocator(max(2, int(length / (0.35 if vertical else 0.6)))))
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        return
    names = positions.categories
    (axes.set_ylim if vertical else axes.set_xlim)(-0.6, len(names) - 0.4)
    needed = (
        0.16
        if vertical
        else 0.05 + min(0.6, max(text_width(n[:50], style.SMALL_PT) for n in names))
    )
    step = min(len(names), -(-int(1000 * needed * len(names) / length) // 1000) or 1)
    room = 0.45 if vertical else length * step / len(names) - 0.05
    places = range(step // 2, len(names), step)
    axis.set_ticks(places, labels=[shortened(names[i], room, style.SMALL_PT) for i in places])


def plain(value: float) -> str:
    """Format a number without an exponent, unless it is very large or small."""
    return f"{value:,.6g}" if value == 0 or 1e-4 <= abs(value) < 1e6 else f"{value:.3g}"
