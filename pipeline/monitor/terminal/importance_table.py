"""Terminal table of importances with standard errors and trends."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import (
    GAP,
    MARKS,
    MAX_CELLS,
    binned,
    marks,
    plain_table,
    sparkline,
)
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.schemas.wording import decimals, measured, printable

MIN_CELLS = 8
"""Narrowest trend, in cells."""

EACH_CELLS = 24
"""Cells that each method needs for a trend of its own; with fewer only the first method has one."""

FEATURE_CELLS = (8, 30)
"""Longest feature name in cells, with little room and with enough room."""


def render_importances(
    view: StreamView, methods: Sequence[Method], width: int, max_features: int | None
) -> Table:
    """Render one row per feature, the most important by the first method on top."""
    features = sorted_features(view, methods[0])[:max_features]
    numbers = {method: _numbers(view, method, features) for method in methods}
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
    series = view.series

    def rank(feature: str) -> float:
        found = series.get((feature, method))
        if found is None:
            return float("inf")
        value = found.newest.value
        return -(value if digits is None else round(value, digits))

    return sorted(view.features, key=rank)


def _numbers(view: StreamView, method: Method, features: Sequence[str]) -> list[str]:
    scale, series = view.largest(method), view.series
    newest = [s.newest if (s := series.get((f, method))) else None for f in features]
    return ["–" if e is None else measured(e.value, e.std_error, scale) for e in newest]


def _trend_cells(methods: Sequence[Method], left: int) -> dict[Method, int]:
    """Return the widths of the trends that fit."""
    each = left // len(methods) - GAP
    if each >= EACH_CELLS:
        return dict.fromkeys(methods, min(each, MAX_CELLS))
    return {methods[0]: min(left - GAP, MAX_CELLS)} if left >= MIN_CELLS + GAP else {}


def _trends(view: StreamView, method: Method, features: Sequence[str], cells: int) -> list[Text]:
    """Return the trends of features on one scale, with marks of their changes."""
    span, series, changes = view.span(), view.series, view.changes
    rows: list[list[float | None]] = []
    for feature in features:
        found = series.get((feature, method))
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
