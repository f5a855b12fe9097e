"""One partial dependence curve in a panel, and the axis of its points."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.monitor.plots.effects import effect_of
from pipeline.monitor.plots.labels import shortened, text_width
from pipeline.monitor.plots.style import LOOKS, PAPER, SMALL_PT, Look, size_in
from schemas.change import Curve
from schemas.record import Label, Value


def class_looks(labels: Sequence[Label]) -> dict[Label | None, Look]:
    """Return how the curves of each class look; None stands for the only one."""
    return {None: LOOKS[0], **{c: LOOKS[i % len(LOOKS)] for i, c in enumerate(labels)}}


def is_numeric(grid: Sequence[Value]) -> bool:
    """Return whether a grid is of a numeric feature: smoothed points are fractions."""
    return all(isinstance(point, float) for point in grid)


class Positions:
    """Where the points of a feature's curves are on the horizontal axis.

    Examples
    --------
    >>> Positions([["b", "a"], ["c", "a"]]).of(["a", "c"]), Positions([[0.5, 2.5]]).of([0.7])
    ([1.0, 2.0], [0.7])
    """

    def __init__(self, grids: Iterable[Sequence[Value]]) -> None:
        grids = list(grids)
        self.is_numeric = all(map(is_numeric, grids))
        categories = dict.fromkeys(str(point) for grid in grids for point in grid)
        self.categories = [] if self.is_numeric else list(categories)
        self._places = {category: float(i) for i, category in enumerate(self.categories)}

    def of(self, grid: Sequence[Value]) -> list[float]:
        """Return the place of each point."""
        if self.is_numeric:
            return [float(point) for point in grid]
        return [self._places[str(point)] for point in grid]


def draw_curve(
    axes: Axes,
    positions: Positions,
    curve: Curve,
    looks: Mapping[Label | None, Look | None],
    *,
    alpha: float = 1.0,
    dashed: bool = False,
) -> None:
    """Draw a curve, one a class that has a look, with a mark at each point; faded ones without."""
    x = positions.of(curve.grid)
    if min(x) == max(x):  # a feature that did not vary
        x = x[:1]
    for label, all_of_it in effect_of(curve).items():
        effect = all_of_it[: len(x)]
        look = looks.get(label)
        if look is None:
            continue
        if not positions.is_numeric:
            is_faded = alpha < 1.0
            axes.plot(
                x,
                effect,
                ls="",
                marker="_" if is_faded else "o",
                ms=9.0 if is_faded else 5.0,
                color=look.color,
                mfc=PAPER if dashed else look.color,
                alpha=alpha,
                zorder=5,
            )
            continue
        axes.plot(
            x,
            effect,
            color=look.color,
            ls=(0, (3, 1.5)) if dashed else look.dashes,
            lw=1.6 if alpha == 1.0 else 0.9,
            marker="o" if alpha == 1.0 or len(x) == 1 else "",
            ms=2.8,
            mfc=PAPER if dashed else look.color,
            alpha=alpha,
            zorder=5 if alpha == 1.0 else 4,
        )


def number_points(axes: Axes, positions: Positions, *, vertical: bool = False) -> None:
    """Let an axis have the feature's values: as many as there is room for."""
    axis, length = (axes.yaxis if vertical else axes.xaxis), size_in(axes)[vertical]
    if positions.is_numeric:
        axis.set_major_locator(MaxNLocator(max(2, int(length / (0.35 if vertical else 0.6)))))
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        return
    names = positions.categories
    (axes.set_ylim if vertical else axes.set_xlim)(-0.6, len(names) - 0.4)
    needed = 0.16 if vertical else 0.05 + min(0.6, max(text_width(n[:50], SMALL_PT) for n in names))
    step = min(len(names), -(-int(1000 * needed * len(names) / length) // 1000) or 1)
    room = 0.45 if vertical else length * step / len(names) - 0.05
    places = range(step // 2, len(names), step)
    axis.set_ticks(places, labels=[shortened(names[i], room, SMALL_PT) for i in places])


def plain(value: float) -> str:
    """Return a number as people write it, unless it is very large or small.

    Examples
    --------
    >>> plain(60000.0), plain(0.0025), plain(3e7)
    ('60,000', '0.0025', '3e+07')
    """
    return f"{value:,.6g}" if value == 0 or 1e-4 <= abs(value) < 1e6 else f"{value:.3g}"
