"""How all figures look: print width, colours for all kinds of colour vision, quiet axes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.monitor.plots.labels import shortened, text_width

PAPER, INK, MUTED, GREY, FAINT = "#FFFFFF", "#222222", "#5A5A5A", "#9A9A9A", "#D0D0D0"

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe, Ito (2008), for all kinds of colour vision; without yellow, too pale for lines."""

TEXT_COLORS = ("#00639B", "#AD4C00", "#00734F", "#A04276", "#855A00", "#1C6F9E", "#000001")
"""The same hues, dark enough to be read on white: a contrast of at least 4.5 to 1."""

LINE_STYLES = ("-", (0, (4, 1.5)))

Dashes = str | tuple[int, tuple[float, ...]]

WIDTH_IN = 7.2
"""Text width of a paper."""

MARGIN_IN = 0.18

TITLE_PT, HEADING_PT, TEXT_PT, SMALL_PT = 10.0, 9.0, 8.0, 7.0

LINE = 1.2
"""Height of a line of text, in that of its letters."""

_SETTINGS: dict[Any, Any] = {
    # names and titles are anybody's: a dollar sign begins no formula
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.labelsize": TEXT_PT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL_PT,
    "ytick.labelsize": SMALL_PT,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.hinting": "no_hinting",  # as wide at any resolution as it was measured
    "svg.hashsalt": "fluxplain",  # else the names in the file are drawn at random
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a line and its label look.

    Attributes
    ----------
    color, text
        Of the line, and of its name.
    dashes
        Of the line.
    important
        Whether it is more than background.
    """

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
"""As many as can be told apart."""


class Picture(Figure):
    """A figure that a notebook shows when it is the value of a cell, without further setup."""

    def _repr_png_(self) -> bytes:
        from pipeline.monitor.plots.saving import rendered  # noqa: PLC0415  which imports this

        return rendered(self, "png")


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside with these settings only, whatever the user's are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for key, value in _SETTINGS.items():
            mpl.rcParams[key] = value
        yield


def new_figure(width_in: float, height_in: float) -> Picture:
    """Return an empty figure."""
    figure = Picture(figsize=(width_in, height_in), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def lines_in(text: str, size_pt: float) -> float:
    """Return how high some lines of text are, in inches."""
    return LINE * size_pt / 72 * (text.count("\n") + 1) if text else 0.0


def add_panel(
    figure: Figure,
    *,
    left: float,
    top: float,
    width: float,
    height: float,
    sharex: Axes | None = None,
    sharey: Axes | None = None,
) -> Axes:
    """Return new axes; all in inches, from the figure's left and upper edge."""
    total_width, total_height = figure.get_size_inches()
    place = (
        left / total_width,
        1 - (top + height) / total_height,
        width / total_width,
        height / total_height,
    )
    return figure.add_axes(place, sharex=sharex, sharey=sharey)


def size_in(axes: Axes) -> tuple[float, float]:
    """Return width and height of a panel, in inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None  # noqa: S101  for the type: they were made in one
    box = axes.get_position()
    width, height = figure.get_size_inches()
    return float(box.width * width), float(box.height * height)


def write(
    figure: Figure,
    text: str,
    *,
    left: float,
    top: float,
    size: float = TEXT_PT,
    color: str = INK,
    weight: str = "normal",
) -> float:
    """Write lines of text from a place in inches downwards; return where the next one begins."""
    width, height = figure.get_size_inches()
    lines = text.split("\n") if text else []
    for line in lines:
        figure.text(
            left / width,
            1 - top / height,
            line,
            fontsize=size,
            color=color,
            weight=weight,
            va="top",
        )
        top += LINE * size / 72
    return top


class Piece(NamedTuple):
    """A part of the line above a panel."""

    text: str
    color: str = MUTED
    size: float = TEXT_PT
    weight: str = "normal"


def title_piece(text: str) -> Piece:
    """Return a panel's name."""
    return Piece(text, INK, HEADING_PT, "bold")


def heading(axes: Axes, *pieces: Piece, left: float = 0.0) -> None:
    """Write a line above a panel, from a place in inches on: its name, and what there is room for.

    Parameters
    ----------
    axes
        The panel.
    pieces
        What to write; the first is shortened if need be, and any other left out.
    left
        From the panel's left edge, in inches.
    """
    width, height = size_in(axes)
    for i, whole in enumerate(pieces):
        piece, is_bold = whole, whole.weight == "bold"
        if i == 0:
            text = shortened(piece.text, width - left, piece.size, bold=is_bold)
            piece = piece._replace(text=text)
        elif left + text_width(piece.text, piece.size, bold=is_bold) > width:
            continue
        axes.text(
            left / width,
            1 + 5 / 72 / height,
            piece.text,
            transform=axes.transAxes,
            fontsize=piece.size,
            color=piece.color,
            weight=piece.weight,
        )
        left += text_width(piece.text, piece.size, bold=is_bold) + 0.1


def number_values(axes: Axes, n: int = 5) -> None:
    """Let the vertical axis have few numbers, and a line at zero if that is in sight."""
    axes.yaxis.set_major_locator(MaxNLocator(n))
    low, high = axes.get_ylim()
    if low <= 0 <= high:
        axes.axhline(0, color=FAINT, lw=0.6, zorder=1)


def number_observations(axes: Axes, *, label: str = "observations (seq)") -> None:
    """Let the horizontal axis count observations, with as many numbers as there is room for."""
    widest = text_width(f"{max(map(abs, axes.get_xlim())):,.0f}", SMALL_PT)
    room = max(2, int(size_in(axes)[0] / (1.9 * widest)))
    axes.xaxis.set_major_locator(MaxNLocator(min(room, 8), integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seq, _: f"{seq:,.0f}"))
    axes.set_xlabel(label)
