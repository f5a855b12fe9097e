"""How the features' shares moved from before a change to after it."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pipeline.monitor.plots.labels import short_names, shortened, text_width
from pipeline.monitor.plots.style import (
    FAINT,
    GREY,
    INK,
    LOOKS,
    MUTED,
    SMALL_PT,
    TEXT_PT,
    Piece,
    heading,
    size_in,
    title_piece,
)
from pipeline.monitor.surroundings import Move, Story
from pipeline.monitor.text import number
from schemas.change import METHOD_NAMES
from schemas.explanation import Method

MAX_ROWS = 8
"""Features with a row of their own; the others share one."""

NAME_IN = 1.15
"""Room for the longest name, in inches."""

RISE, FALL = LOOKS[2], LOOKS[4]


class Row(NamedTuple):
    """One line of the panel.

    Attributes
    ----------
    name
        Of the feature.
    begin, end
        Where its bar begins and ends.
    std_error
        Of the difference; None where it is not known.
    is_step
        Whether the bar begins where the one above ends.
    """

    name: str
    begin: float
    end: float
    std_error: float | None
    is_step: bool


def rows_of(story: Story) -> tuple[Method | None, list[Row]]:
    """Return how the features' means moved, and by which method; nothing if that is not known.

    By iSAGE if it is there, since its shares add up to the model's loss reduction; else by the
    method that changed.
    """
    if moves := story.moves("isage"):
        return "isage", steps(moves)
    method = story.change.method
    if method is None or method == "loss" or not (moves := story.moves(method)):
        return None, []
    rows = [Row(m.feature, m.before.mean, m.after.mean, m.std_error, False) for m in moves]
    return method, rows[:MAX_ROWS]


def steps(moves: Sequence[Move], most: int = MAX_ROWS) -> list[Row]:
    """Return the moves as steps from the sum before to the sum after; of many the last is the rest.

    Examples
    --------
    >>> from pipeline.monitor.surroundings import Moments
    >>> moves = [
    ...     Move("a", Moments(9, 0.25), Moments(9, 1.0)),
    ...     Move("b", Moments(9, 0.5), Moments(9, 0.0)),
    ... ]
    >>> [(row.name, row.begin, row.end) for row in steps(moves)]
    [('a', 0.75, 1.5), ('b', 1.5, 1.0)]
    """
    level = sum(move.before.mean for move in moves)
    rows = []
    for move in moves if len(moves) <= most + 1 else moves[:most]:
        end = level + move.difference
        rows.append(Row(move.feature, level, end, move.std_error, True))
        level = end
    others = moves[len(rows) :]
    if others:
        end = level + sum(move.difference for move in others)
        rows.append(Row(f"{len(others)} others", level, end, None, True))
    return rows


def rows_in(rows: Sequence[Row]) -> float:
    """Return how high a panel should be, in inches."""
    return 0.21 * (len(rows) + 2 * rows[0].is_step) if rows else 0.0


def names_width(rows: Sequence[Row]) -> float:
    """Return how much room the names need at the left of the panel, in inches."""
    names = ("before", *(row.name for row in rows))
    return 0.08 + max(text_width(shortened(name, NAME_IN, TEXT_PT), TEXT_PT) for name in names)


def draw_moves(axes: Axes, rows: Sequence[Row], method: Method, *, feature: str | None) -> None:
    """Draw a line a feature, from its mean before to that after; whiskers are standard errors.

    Parameters
    ----------
    axes
        The panel, with room for the names at its left.
    rows
        What to draw, at least one.
    method
        Whose means these are.
    feature
        The one that changed; it is printed bold.
    """
    add_up = rows[0].is_step
    of = "the loss reduction" if add_up else "the importance"
    heading(
        axes, title_piece(METHOD_NAMES[method]), Piece(f"where {of} moved"), left=-names_width(rows)
    )
    names = short_names((row.name for row in rows), NAME_IN, TEXT_PT)
    places = range(1, len(rows) + 1) if add_up else range(len(rows))
    numbers = [row.begin for row in rows]
    numbers += [row.end + sign * _error(row) for row in rows for sign in (-1, 1)]
    scale = max(map(abs, numbers)) or 1.0
    low, high = min(numbers), max(numbers)
    extent = (high - low) or 1.0
    texts = []
    for place, row in zip(places, rows, strict=True):
        look = RISE if row.end >= row.begin else FALL
        bold = "bold" if row.name == feature else "normal"
        axes.barh(place, row.end - row.begin, left=row.begin, height=0.62, color=look.color, lw=0)
        axes.errorbar(row.end, place, xerr=_error(row), fmt="none", ecolor=INK, elinewidth=0.7)
        if add_up:
            axes.plot([row.end] * 2, [place - 0.31, place + 1.31], color=GREY, lw=0.5, zorder=1)
        texts.append((place, max(row.begin, row.end + _error(row)), look.text, row))
        axes.text(
            -0.03 / size_in(axes)[0],
            place,
            names[row.name],
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=TEXT_PT,
            weight=bold,
        )
    if add_up:
        _mark_total(axes, 0, rows[0].begin, "before", scale)
        _mark_total(axes, len(rows) + 1, rows[-1].end, "after", scale)
    for place, x, color, row in texts:
        text = number(abs(row.end - row.begin), scale)
        if float(text):
            text = ("+" if row.end >= row.begin else "−") + text
        axes.annotate(
            text,
            (x, place),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=SMALL_PT,
            color=color,
            va="center",
        )
    widest = min(0.6, text_width("+0.0000", SMALL_PT) / size_in(axes)[0])
    axes.set_xlim(low - 0.06 * extent, high + (0.08 + widest) * extent / (1 - widest))
    axes.set_ylim(len(rows) + (1.6 if add_up else -0.4), -0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"mean [{'output' if method == 'ipdp' else 'loss'}]")
    axes.xaxis.set_major_locator(MaxNLocator(max(2, int(size_in(axes)[0] / 0.5))))
    if low <= 0 <= high:
        axes.axvline(0, color=FAINT, lw=0.6, zorder=0)


def _error(row: Row) -> float:
    return 0.0 if row.std_error is None else row.std_error


def _mark_total(axes: Axes, place: int, value: float, name: str, scale: float) -> None:
    axes.plot([value], [place], marker="D", ms=3.5, color=INK, ls="")
    axes.annotate(
        number(value, scale),
        (value, place),
        xytext=(5, 0),
        textcoords="offset points",
        fontsize=SMALL_PT,
        weight="bold",
        va="center",
    )
    axes.text(
        -0.03 / size_in(axes)[0],
        place,
        name,
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="center",
        fontsize=TEXT_PT,
        color=MUTED,
    )
