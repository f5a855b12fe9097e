"""Plots the moves of all features' means at a change."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.text_fit import short_names, text_width
from fluxplain.results.change_context import ChangeContext, Move
from fluxplain.schemas.methods import METHOD_NAMES, METHODS, Method
from fluxplain.schemas.wording import number

MAX_ROWS = 8
"""Most features with a row of their own; the others share one."""

NAME_IN = 1.15
"""Longest name, in inches."""

RISE, FALL = style.LOOKS[2], style.LOOKS[4]


class Row(NamedTuple):
    """A bar from one mean to another; a step begins at the end of the row above."""

    name: str
    begin: float
    end: float
    std_error: float
    is_step: bool


def rows_of(context: ChangeContext) -> tuple[Method | None, list[Row]]:
    """Return the method of the moves, and a row for each feature; None and no rows if unknown.

    The method is iSAGE if available, since its shares add up to the model's loss reduction;
    otherwise the method that changed.
    """
    if moves := context.moves("isage"):
        return "isage", _steps(moves)
    method = context.change.method
    if method is None or method == "loss" or not (moves := context.moves(method)):
        return None, []
    rows = [Row(m.feature, m.before.mean, m.after.mean, m.std_error, False) for m in moves]
    return method, rows[:MAX_ROWS]


def _steps(moves: Sequence[Move]) -> list[Row]:
    """Return steps from the sum before to the sum after; one row sums up the smallest moves."""
    level = sum(move.before.mean for move in moves)
    rows = []
    for move in moves if len(moves) <= MAX_ROWS + 1 else moves[:MAX_ROWS]:
        end = level + move.difference
        rows.append(Row(move.feature, level, end, move.std_error, True))
        level = end
    others = moves[len(rows) :]
    if others:
        end = level + sum(move.difference for move in others)
        rows.append(Row(f"{len(others)} others", level, end, 0.0, True))
    return rows


def rows_in(rows: Sequence[Row]) -> float:
    """Return the height of a panel for some rows, in inches."""
    return 0.21 * (len(rows) + 2 * rows[0].is_step) if rows else 0.0


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the name of each line of the panel, short; steps have a line before and after."""
    names = short_names((row.name for row in rows), NAME_IN, style.TEXT_PT)
    labels = [names[row.name] for row in rows]
    return ["before", *labels, "after"] if rows and rows[0].is_step else labels


def names_width(rows: Sequence[Row]) -> float:
    """Return the width that the names need left of the panel, in inches."""
    return 0.08 + max((text_width(name, style.TEXT_PT) for name in labels_of(rows)), default=0.0)


def draw_moves(axes: Axes, rows: Sequence[Row], method: Method, *, feature: str | None) -> None:
    """Draw one bar per feature, from the mean before to the mean after, with standard errors.

    There must be at least one row. The name of the changed feature is bold.
    """
    add_up = rows[0].is_step
    of = "the loss reduction" if add_up else "the importance"
    piece = style.Piece(f"where {of} moved")
    style.heading(axes, METHOD_NAMES[method], piece, left=-names_width(rows))
    style.name_rows(axes, labels_of(rows))
    numbers = [row.begin for row in rows]
    numbers += [row.end + sign * row.std_error for row in rows for sign in (-1, 1)]
    scale = max(map(abs, numbers)) or 1.0
    for place, row in enumerate(rows, int(add_up)):
        _draw_row(axes, place, row, scale)
        if row.name == feature:
            axes.get_yticklabels()[place].set_fontweight("bold")
    if add_up:
        _mark_total(axes, 0, rows[0].begin, scale)
        _mark_total(axes, len(rows) + 1, rows[-1].end, scale)
    low, high = min(numbers), max(numbers)
    extent = (high - low) or 1.0
    widest = min(0.6, text_width("+0.0000", style.SMALL_PT) / style.size_in(axes)[0])
    axes.set_xlim(low - 0.06 * extent, high + (0.08 + widest) * extent / (1 - widest))
    axes.set_xlabel(f"mean [{METHODS[method].unit}]")
    axes.xaxis.set_major_locator(MaxNLocator(max(2, int(style.size_in(axes)[0] / 0.5))))
    if low <= 0 <= high:
        axes.axvline(0, color=style.FAINT, lw=0.6, zorder=0)


def _draw_row(axes: Axes, place: int, row: Row, scale: float) -> None:
    look = RISE if row.end >= row.begin else FALL
    axes.barh(place, row.end - row.begin, left=row.begin, height=0.62, color=look.color, lw=0)
    axes.errorbar(row.end, place, xerr=row.std_error, fmt="none", ecolor=style.INK, elinewidth=0.7)
    if row.is_step:
        axes.plot([row.end] * 2, [place - 0.31, place + 1.31], color=style.GREY, lw=0.5, zorder=1)
    text = number(abs(row.end - row.begin), scale)
    if float(text):
        text = ("+" if row.end >= row.begin else "−") + text
    _number(axes, text, (max(row.begin, row.end + row.std_error), place), color=look.text)


def _mark_total(axes: Axes, place: int, value: float, scale: float) -> None:
    axes.plot([value], [place], marker="D", ms=3.5, color=style.INK, ls="")
    _number(axes, number(value, scale), (value, place), weight="bold")


def _number(axes: Axes, text: str, at: tuple[float, float], **look: Any) -> None:
    small: Any = {"fontsize": style.SMALL_PT, "va": "center", "textcoords": style.OFFSET}
    axes.annotate(text, at, (5, 0), **small, **look)
