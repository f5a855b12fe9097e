"""Terminal table of importances with trends, and charts of them with uncertainty bands."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import (
    GAP,
    MARKS,
    MAX_CELLS,
    binned,
    marks,
    plain_table,
    share,
    sparkline,
)
from fluxplain.results.stream_results import Key, StreamView
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.schemas.wording import compared, decimals, printable

MIN_CELLS = 8
"""Narrowest trend, in cells."""

EACH_CELLS = 24
"""Cells that each method needs for a trend of its own; with fewer only the first method has one."""

FEATURE_CELLS = (8, 30)
"""Longest feature name in cells, with little room and with enough room."""

ERRORS = 2.0
"""Standard errors on each side of the band, as on the dashboard."""

SHADE = "░"

HALVES = "▄▀"
"""Characters for an importance in the lower and in the upper half of a line."""

BAND_CELLS = 48
"""Narrowest band, in cells, if several are side by side."""


def render_importances(
    view: StreamView, methods: Sequence[Method], width: int, max_features: int
) -> Table:
    """Render one row per feature, the most important by the first method on top."""
    features = sorted_features(view, methods[0])[:max_features]
    texts = {method: view.texts(method) for method in methods}
    numbers = {m: [texts[m].get(feature, "–") for feature in features] for m in methods}
    name_cells = min(max(map(len, features)), FEATURE_CELLS[1])
    left = width - sum(GAP + max(map(len, [METHOD_NAMES[m], *numbers[m]])) for m in methods)
    missing = MIN_CELLS + GAP - (left - name_cells)
    name_cells = max(name_cells - max(missing, 0), FEATURE_CELLS[0])
    cells = _trend_cells(methods, left - name_cells)

    table = plain_table()
    columns: list[Sequence[Text]] = [[Text(printable(feature)) for feature in features]]
    table.add_column("feature", width=name_cells, no_wrap=True, overflow="ellipsis")
    for method in methods:
        table.add_column(METHOD_NAMES[method], justify="right", no_wrap=True)
        columns.append([Text(text) for text in numbers[method]])
        if method in cells:
            table.add_column("", width=cells[method], no_wrap=True)
            columns.append(_trends(view, method, features, cells[method]))
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    return table


def sorted_features(view: StreamView, method: Method) -> list[str]:
    """Return the features by importance; those with the same printed value keep their order."""
    digits = decimals(view.largest(method))
    newest = view.newest(method)

    def rank(feature: str) -> float:
        if feature not in newest:
            return float("inf")
        value = newest[feature].value
        return -(value if digits is None else round(value, digits))

    return sorted(view.features, key=rank)


def _trend_cells(methods: Sequence[Method], left: int) -> dict[Method, int]:
    """Return the widths of the trends that fit."""
    each = left // len(methods) - GAP
    if each >= EACH_CELLS:
        return dict.fromkeys(methods, min(each, MAX_CELLS))
    return {methods[0]: min(left - GAP, MAX_CELLS)} if left >= MIN_CELLS + GAP else {}


def _trends(view: StreamView, method: Method, features: Sequence[str], cells: int) -> list[Text]:
    """Return the trends of features on one scale, with marks of their changes."""
    span, series, changes = view.span(), view.series[method], view.changes
    rows: list[list[float | None]] = []
    for feature in features:
        found = series.get(feature)
        points = found.points if found else None
        rows.append(binned(points.seq, points.value, span, cells) if points else [None] * cells)
    # skip the first estimates: means of few observations, whose scale would flatten all others
    settled = [value for row in rows for value in _settled(row)]
    low, high = min(settled, default=0.0), max(settled, default=0.0)
    texts = []
    for feature, row in zip(features, rows, strict=True):
        line = list(sparkline(row, min(low, 0.0), high))
        for at, mark in marks(changes, (feature, method), span, cells).items():
            line[at] = mark
        text = Text("".join(line), style="cyan", no_wrap=True)
        text.highlight_words(list(MARKS.values()), style="bold yellow")
        texts.append(text)
    return texts


def _settled(row: Sequence[float | None]) -> list[float]:
    values = [value for value in row if value is not None]
    return values[len(values) // 20 + 1 :] or values


def render_bands(view: StreamView, keys: Sequence[Key], width: int, lines: int) -> Table:
    """Render as many of the first bands as fit side by side, each with a title and a scale."""
    drawn = keys[: max(width // BAND_CELLS, 1)]
    cells = (width - GAP * (len(drawn) - 1)) // len(drawn)
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for _ in drawn:
        table.add_column(width=cells, no_wrap=True, overflow="ellipsis")
    titles = [f"{METHOD_NAMES[m]} of {printable(f)}, {SHADE} two standard errors" for f, m in drawn]
    table.add_row(*(Text(title, style="bold") for title in titles))
    table.add_row(*(_band(view, key, cells, lines) for key in drawn))
    return table


def _band(view: StreamView, key: Key, width: int, lines: int) -> Text:
    points = view.series[key[1]][key[0]].points
    errors = ERRORS * np.nan_to_num(points.std_error)
    edges = points.value - errors, points.value + errors
    # skip the first estimates: means of few observations, whose scale would flatten all others
    settled = len(points.seq) // 10
    low, high = float(edges[0][settled:].min()), float(edges[1][settled:].max())
    labels = _labels(low, high, lines)
    label_cells = max(map(len, labels.values()))
    cells = min(max(width - label_cells - 2, 1), MAX_CELLS)
    span = view.span()
    columns = [binned(points.seq, each, span, cells) for each in (points.value, *edges)]
    rows = _rows(columns, marks(view.changes, key, span, cells), (low, high), lines)
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
    zero = {_level(0.0, (low, high), lines): "0"} if low < 0.0 < high else {}
    return zero | ({} if low == high else {lines - 1: top}) | {0: bottom}


def _rows(
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
        for line in range(_level(low, limits, lines), _level(high, limits, lines) + 1):
            rows[line][at] = SHADE
        half = _level(value, limits, 2 * lines)
        rows[half // 2][at] = marked.get(at, HALVES[half % 2])
    return rows


def _level(value: float, limits: tuple[float, float], lines: int) -> int:
    """Return the line of a value, counted from below; the nearest one if it is outside."""
    return min(int(share(value, *limits) * lines), lines - 1)
