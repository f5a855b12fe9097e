"""Style of all figures: print width, colours for all kinds of colour vision, quiet axes."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fluxplain.monitor.figures.text_fit import shortened, text_width, wrapped

PAPER, INK, MUTED, GREY, FAINT = "#FFFFFF", "#222222", "#5A5A5A", "#9A9A9A", "#D0D0D0"

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#3D4551")
"""Colours for all kinds of colour vision (Okabe, Ito 2008), without yellow, too pale for lines."""

TEXT_COLORS = ("#00639B", "#AD4C00", "#00734F", "#A04276", "#855A00", "#1C6F9E", "#3D4552")
"""The same hues, dark enough for text on white: a contrast of at least 4.5 to 1."""

LINE_STYLES = ("-", (0, (4, 1.5)), (0, (1.3, 1.6)), (0, (6, 2, 1.3, 2)))

Dashes = str | tuple[int, tuple[float, ...]]

WIDTH_IN = 7.2
"""Text width of a paper, in inches."""

MARGIN_IN = 0.18

AXIS_IN = 0.68
"""Width for the numbers and the label of a vertical axis, in inches."""

TITLE_PT, HEADING_PT, TEXT_PT, SMALL_PT = 10.0, 9.0, 8.0, 7.0

LINE = 1.2
"""Height of a line of text, relative to the font size."""

NAME_GAP_PT = 3.0
"""Gap between a row's name and its panel, in points."""

OFFSET = "offset points"

SETTINGS = Path(__file__).with_name("print.mplstyle")


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of a line and its name, dashes, and whether the line is more than background."""

    color: str
    text: str
    dashes: Dashes = "-"
    important: bool = True


BACKGROUND = Look(GREY, MUTED, important=False)

LOOKS = tuple(
    Look(color, text, dashes)
    for dashes in LINE_STYLES
    for color, text in zip(PALETTE, TEXT_COLORS, strict=True)
)
"""All looks that can be distinguished: those with the same colour differ in their dashes."""


def looks_of(names: Iterable[str], places: Mapping[str, int]) -> dict[str, Look]:
    """Return the look of each name, as on the dashboard's page (``palette.js``).

    The colour follows from the name's place. Of several with the same colour, each has other
    dashes, as long as there are any.

    Examples
    --------
    >>> looks = looks_of(["a", "h"], {"a": 0, "h": 28})
    >>> looks["a"].color == looks["h"].color, looks["a"].dashes == looks["h"].dashes
    (True, False)
    """
    found: dict[str, Look] = {}
    for name in names:
        color, first = places[name] % len(PALETTE), places[name] // len(PALETTE)
        dashes = [(first + i) % len(LINE_STYLES) for i in range(len(LINE_STYLES))]
        looks = [LOOKS[color + len(PALETTE) * each] for each in dashes]
        found[name] = next((look for look in looks if look not in found.values()), looks[0])
    return found


class Picture(Figure):
    """A figure that a notebook displays as the value of a cell, without further setup."""

    def _repr_png_(self) -> bytes:
        from fluxplain.monitor.figures.saving import rendered  # noqa: PLC0415  which imports this

        return rendered(self, "png")


def styled() -> AbstractContextManager[None]:
    """Return a context in which matplotlib uses these settings instead of the user's."""
    return mpl.rc_context(fname=SETTINGS)


def titled_figure(
    width_in: float, *, title: str, note: str, body_in: float, left: float = AXIS_IN
) -> tuple[Picture, float]:
    """Return a figure with a title and a note, and the top of its body, in inches."""
    room = width_in - left - MARGIN_IN
    headline = wrapped(title, room, TITLE_PT, bold=True)
    small = wrapped(note, room, SMALL_PT)
    top = MARGIN_IN + lines_in(headline, TITLE_PT) + 0.3
    height_in = top + body_in + lines_in(small, SMALL_PT) + MARGIN_IN
    figure = Picture(figsize=(width_in, height_in), facecolor=PAPER)
    FigureCanvasAgg(figure)
    write(figure, headline, left=left, top=MARGIN_IN, size=TITLE_PT, weight="bold")
    write(figure, small, left=left, top=top + body_in, size=SMALL_PT, color=MUTED)
    return figure, top


def lines_in(text: str, size_pt: float) -> float:
    """Return the height of some lines of text, in inches."""
    return LINE * size_pt / 72 * (text.count("\n") + 1) if text else 0.0


class Box(NamedTuple):
    """A rectangle in a figure, in inches from its left and upper edge."""

    left: float
    top: float
    width: float
    height: float


def add_panels(
    figure: Figure,
    box: Box,
    rows: int = 1,
    columns: int = 1,
    *,
    gap: float = 0.0,
    space: float = 0.0,
    ratios: Sequence[float] | None = None,
    sharex: bool = False,
    sharey: bool = False,
) -> list[Axes]:
    """Divide a box into panels, row by row, with gaps in inches between rows and columns.

    ``ratios`` are those of the rows' heights. With ``sharex`` or ``sharey``, only the outer panels
    have numbers.
    """
    width, height = figure.get_size_inches()
    grid = figure.add_gridspec(
        rows,
        columns,
        left=box.left / width,
        right=(box.left + box.width) / width,
        top=1 - box.top / height,
        bottom=1 - (box.top + box.height) / height,
        hspace=gap * rows / (box.height - gap * (rows - 1)),
        wspace=space * columns / (box.width - space * (columns - 1)),
        height_ratios=ratios,
    )
    return list(grid.subplots(squeeze=False, sharex=sharex, sharey=sharey).flat)


def size_in(axes: Axes) -> tuple[float, float]:
    """Return width and height of a panel, in inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None  # noqa: S101  for the type checker
    width, height = axes.get_position().size * figure.get_size_inches()
    return float(width), float(height)


def write(
    figure: Figure, text: str, *, left: float, top: float, size: float = TEXT_PT, **look: Any
) -> float:
    """Write lines of text at a position in inches; return the top of the next line."""
    width, height = figure.get_size_inches()
    at = left / width, 1 - top / height
    figure.text(*at, text, va="top", linespacing=LINE, size=size, **look)
    return top + lines_in(text, size)


class Piece(NamedTuple):
    """A part of a panel's heading."""

    text: str
    color: str = MUTED
    size: float = TEXT_PT
    weight: str = "normal"


def heading(axes: Axes, title: str, *pieces: Piece, left: float = 0.0) -> None:
    """Write a line above a panel: its title, shortened if necessary, and the pieces that fit."""
    width, height = size_in(axes)
    title = shortened(title, width - left, HEADING_PT, bold=True)
    for i, piece in enumerate((Piece(title, INK, HEADING_PT, "bold"), *pieces)):
        is_bold = piece.weight == "bold"
        if i and left + text_width(piece.text, piece.size, bold=is_bold) > width:
            continue
        look: Any = {"fontsize": piece.size, "color": piece.color, "weight": piece.weight}
        at = left / width, 1 + 5 / 72 / height
        axes.text(*at, piece.text, transform=axes.transAxes, **look)
        left += text_width(piece.text, piece.size, bold=is_bold) + 0.1


def name_line(
    axes: Axes, seq: int, text: str, shift: tuple[float, float], *, size: float, side: str = "left"
) -> None:
    """Label a vertical line at an offset, in points, from its upper end."""
    box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
    top: Any = {"xycoords": axes.get_xaxis_transform(), "va": "top", "ha": side, "zorder": 9}
    axes.annotate(text, (seq, 1), shift, textcoords=OFFSET, fontsize=size, bbox=box, **top)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Number the rows of a panel from the top, and write their names left of it."""
    axes.set_yticks(range(len(names)), labels=names, fontsize=TEXT_PT)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, pad=NAME_GAP_PT)
    axes.spines["left"].set_visible(False)


def label_values(axes: Axes, label: str) -> None:
    """Label the vertical axis at a fixed distance."""
    axes.set_ylabel(label)
    axes.yaxis.set_label_coords(-0.47 / size_in(axes)[0], 0.5)


def set_values(axes: Axes, values: Iterable[float], *, below: float, above: float) -> None:
    """Fit the vertical axis to all values, with margins given as shares of their range."""
    shown = list(values)
    low, high = min(shown), max(shown)
    extent = (high - low) or abs(high) or 1.0
    axes.set_ylim(low - below * extent, high + above * extent)


def number_values(axes: Axes, n: int = 5) -> None:
    """Number the vertical axis sparsely, with a line at zero if zero is in its range."""
    axes.yaxis.set_major_locator(MaxNLocator(n))
    low, high = axes.get_ylim()
    if low <= 0 <= high:
        axes.axhline(0, color=FAINT, lw=0.6, zorder=1)


def number_observations(axes: Axes) -> None:
    """Number the horizontal axis with as many seqs as fit."""
    widest = text_width(f"{max(map(abs, axes.get_xlim())):,.0f}", SMALL_PT)
    room = max(2, int(size_in(axes)[0] / (1.9 * widest)))
    axes.xaxis.set_major_locator(MaxNLocator(min(room, 8), integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seq, _: f"{seq:,.0f}"))
    axes.set_xlabel("observations (seq)")
