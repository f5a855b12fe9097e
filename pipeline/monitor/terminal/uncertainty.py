"""Text chart of an importance over time with its uncertainty band."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import GAP, MARKS, MAX_CELLS, binned, marks, share
from fluxplain.results.stream_results import Key, StreamView
from fluxplain.schemas.methods import METHOD_NAMES
from fluxplain.schemas.wording import compared, printable

ERRORS = 2.0
"""Standard errors on each side of the band, as on the dashboard."""

SHADE = "░"

HALVES = "▄▀"
"""Characters for an importance in the lower and in the upper half of a line."""

MIN_CELLS = 48
"""Narrowest band, in cells, if several are side by side."""


def render_bands(view: StreamView, keys: Sequence[Key], width: int, lines: int) -> Table:
    """Render as many of the first bands as fit side by side, each with a title and a scale."""
    drawn = keys[: max(width // MIN_CELLS, 1)]
    cells = (width - GAP * (len(drawn) - 1)) // len(drawn)
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for _ in drawn:
        table.add_column(width=cells, no_wrap=True, overflow="ellipsis")
    titles = [f"{METHOD_NAMES[m]} of {printable(f)}, {SHADE} two standard errors" for f, m in drawn]
    table.add_row(*(Text(title, style="bold") for title in titles))
    table.add_row(*(_band(view, key, cells, lines) for key in drawn))
    return table


def _band(view: StreamView, key: Key, width: int, lines: int) -> Text:
    points = view.series[key].points
    edges = points.value - ERRORS * points.std_error, points.value + ERRORS * points.std_error
    # skip the first estimates: means of few observations, whose scale would flatten all others
    settled = len(points.seq) // 10
    low, high = float(edges[0][settled:].min()), float(edges[1][settled:].max())
    labels = _labels(low, high, lines)
    label_cells = max(map(len, labels.values()))
    cells = min(max(width - label_cells - 2, 1), MAX_CELLS)
    span = view.span()
    columns = [binned(points.seq, each, span, cells) for each in (points.value, *edges)]
    rows = _drawn(columns, marks(view.changes, key, span, cells), (low, high), lines)
    text = Text(no_wrap=True)
    for line in reversed(range(lines)):
        axis = "┤" if line in labels else "│"
        text.append(f"{labels.get(line, ''):>{label_cells}} {axis}", style="dim")
        text.append("".join(rows[line]), style="cyan")
        text.append("\n" if line else "")
    text.highlight_words([SHADE], style="dim")
    text.highlight_words(list(MARKS.values()), style="bold yellow")
    return text


def _labels(low: float, high: float, lines: int) -> dict[int, str]:
    """Return line, counted from below → label: the ends of the scale, and 0 between them."""
    bottom, top = compared(low, high)
    zero = {_line(0.0, (low, high), lines): "0"} if low < 0.0 < high else {}
    return zero | ({} if low == high else {lines - 1: top}) | {0: bottom}


def _drawn(
    columns: Sequence[Sequence[float | None]],
    marked: dict[int, str],
    limits: tuple[float, float],
    lines: int,
) -> list[list[str]]:
    """Return the characters of each line, the lowest first."""
    rows = [[" "] * len(columns[0]) for _ in range(lines)]
    for at, (value, low, high) in enumerate(zip(*columns, strict=True)):
        if value is None or low is None or high is None:
            continue
        for line in range(_line(low, limits, lines), _line(high, limits, lines) + 1):
            rows[line][at] = SHADE
        half = _line(value, limits, 2 * lines)
        rows[half // 2][at] = marked.get(at, HALVES[half % 2])
    return rows


def _line(value: float, limits: tuple[float, float], lines: int) -> int:
    """Return the line of a value, counted from below; the nearest one if it is outside."""
    return min(int(share(value, *limits) * lines), lines - 1)
