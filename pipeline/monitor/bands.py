"""How sure an importance was, over time: its course in a band, some lines high."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from pipeline.monitor.courses import GAP, MARKS, MAX_CELLS, mark, span
from pipeline.monitor.history import Key, Point, StreamHistory
from pipeline.monitor.spark import binned, cell, share
from pipeline.monitor.text import compared, printable
from schemas.change import METHOD_NAMES

ERRORS = 2.0
"""Standard errors on each side, as on the dashboard."""

SHADE = "░"

HALVES = "▄▀"
"""The course in the lower and in the upper half of a line."""

BESIDE_CELLS = 48
"""Explanations are drawn side by side if each has so many columns."""


def render_bands(state: StreamHistory, keys: Sequence[Key], width: int, lines: int) -> Table:
    """Return the courses of some explanations in their bands, each with a scale of its own.

    Side by side, as many as there is room for; over each a line says what it is.

    Parameters
    ----------
    state
        What is known of the stream.
    keys
        Which explanations, at least one; the first ones are drawn.
    width
        Columns of the terminal.
    lines
        Height of the scale.
    """
    drawn = keys[: max(width // BESIDE_CELLS, 1)]
    cells = (width - GAP * (len(drawn) - 1)) // len(drawn)
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for _ in drawn:
        table.add_column(width=cells, no_wrap=True, overflow="ellipsis")
    titles = [f"{METHOD_NAMES[m]} of {printable(f)}, {SHADE} two standard errors" for f, m in drawn]
    table.add_row(*(Text(title, style="bold") for title in titles))
    table.add_row(*(_scaled(state, key, cells, lines) for key in drawn))
    return table


def _scaled(state: StreamHistory, key: Key, width: int, lines: int) -> Text:
    """Return a band with its scale at the left."""
    low, high = _limits(state.series[key].points)
    labels = _labels(low, high, lines)
    cells = max(map(len, labels.values()))
    room = max(width - cells - 2, 1)
    rows = _drawn(state, key, (low, high), min(room, MAX_CELLS), lines)
    text = Text(no_wrap=True)
    for line in reversed(range(lines)):
        axis = "┤" if line in labels else "│"
        text.append(f"{labels.get(line, ''):>{cells}} {axis}", style="dim")
        text.append("".join(rows[line]), style="cyan")
        text.append("\n" if line else "")
    text.highlight_words([SHADE], style="dim")
    text.highlight_words(list(MARKS.values()), style="bold yellow")
    return text


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    """Return the ends of the scale."""
    # the first estimates are means of a few observations, and would make all others flat
    settled = points[len(points) // 10 :]
    lows, highs = zip(*(_edges(point) for point in settled), strict=True)
    return min(lows), max(highs)


def _edges(point: Point) -> tuple[float, float]:
    return point.value - ERRORS * point.std_error, point.value + ERRORS * point.std_error


def _labels(low: float, high: float, lines: int) -> dict[int, str]:
    """Return line, from below → what stands at it: the ends of the scale, and 0 between them."""
    bottom, top = compared(low, high)
    zero = {_line(0.0, low, high, lines): "0"} if low < 0.0 < high else {}
    return zero | ({} if low == high else {lines - 1: top}) | {0: bottom}


def _drawn(
    state: StreamHistory, key: Key, limits: tuple[float, float], cells: int, lines: int
) -> list[list[str]]:
    """Return the characters of each line, the lowest first."""
    first, last = span(state)
    points = state.series[key].points
    values = binned(((p.seq, p.value) for p in points), first, last, cells)
    lows = binned(((p.seq, _edges(p)[0]) for p in points), first, last, cells)
    highs = binned(((p.seq, _edges(p)[1]) for p in points), first, last, cells)
    marks = {
        cell(change.seq, first, last, cells): mark(change)
        for change in state.changes
        if change.kind == "drift" and (change.feature, change.method) == key
    }
    rows = [[" "] * cells for _ in range(lines)]
    for at, (value, low, high) in enumerate(zip(values, lows, highs, strict=True)):
        if value is None or low is None or high is None:
            continue
        for line in range(_line(low, *limits, lines), _line(high, *limits, lines) + 1):
            rows[line][at] = SHADE
        half = _line(value, *limits, 2 * lines)
        rows[half // 2][at] = marks.get(at, HALVES[half % 2])
    return rows


def _line(value: float, low: float, high: float, lines: int) -> int:
    """Return on which line a value lies, from below; the nearest if on none."""
    return min(int(share(value, low, high) * lines), lines - 1)
