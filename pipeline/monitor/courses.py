"""The table of importances: each with its standard error, and how it came to be."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from pipeline.monitor.history import Key, Point, Series, StreamHistory
from pipeline.monitor.spark import binned, cell, sparkline
from pipeline.monitor.text import decimals, measured, printable
from schemas import Change
from schemas.change import METHOD_NAMES
from schemas.explanation import Method

MIN_CELLS = 8
"""Width of a course below which there is none."""

MAX_CELLS = 80

GAP = 2
"""Between columns."""

EACH_CELLS = 24
"""Each method has a course if so much is left for each; else the first has one."""

FEATURE_CELLS = (8, 30)
"""A feature's name is cut to the first if there is no room, and at the second anyway."""

MARKS = {"rose": "▲", "fell": "▼"}


def render_importances(
    state: StreamHistory, methods: Sequence[Method], width: int, max_features: int | None
) -> Table:
    """Return one row a feature, the most important by the first method on top.

    Parameters
    ----------
    state
        What is known of the stream.
    methods
        Which to show, at least one.
    width
        Columns of the terminal: what is left of them is for the courses.
    max_features
        How many features; None for all.
    """
    scales = {method: largest(state, method) for method in methods}
    features = sorted_features(state, methods[0])[:max_features]
    numbers = {m: [_importance(state, (f, m), scales[m]) for f in features] for m in methods}
    name_cells = min(max(map(len, features)), FEATURE_CELLS[1])
    left = width - sum(GAP + max(map(len, [METHOD_NAMES[m], *numbers[m]])) for m in methods)
    missing = MIN_CELLS + GAP - (left - name_cells)
    name_cells = max(name_cells - max(missing, 0), FEATURE_CELLS[0])
    cells = _cells_of_courses(methods, left - name_cells)

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("feature", width=name_cells, no_wrap=True, overflow="ellipsis")
    drawn: dict[Method, list[Text]] = {}
    for method in methods:
        table.add_column(METHOD_NAMES[method], justify="right", no_wrap=True)
        if method in cells:
            table.add_column("", width=cells[method], no_wrap=True)
            drawn[method] = _courses(state, method, features, cells[method])
    for row, feature in enumerate(features):
        shown = [Text(printable(feature))]
        for method in methods:
            shown.append(Text(numbers[method][row]))
            if method in drawn:
                shown.append(drawn[method][row])
        table.add_row(*shown)
    return table


def sorted_features(state: StreamHistory, method: Method) -> list[str]:
    """Return the features by importance; those that read the same stay in their order."""
    scale = largest(state, method)

    def rank(feature: str) -> float:
        explanation = state.latest.get((feature, method))
        if explanation is None:
            return float("inf")
        digits = decimals(scale)
        return -(explanation.value if digits is None else round(explanation.value, digits))

    return sorted(state.features, key=rank)


def largest(state: StreamHistory, method: Method) -> float:
    """Return the largest importance that a method gives to a feature."""
    return max((abs(e.value) for (_, m), e in state.latest.items() if m == method), default=0.0)


def span(state: StreamHistory) -> tuple[int, int]:
    """Return the first and the newest seq of the courses, which share their axis."""
    starts = [series.points[0].seq for series in state.series.values() if series.points]
    return min(starts, default=0), max(state.newest_seq, 0)


def course(series: Series[Point] | None, first: int, last: int, cells: int) -> list[float | None]:
    """Return a course as so many numbers; None where there was nothing yet."""
    points = series.points if series is not None else []
    return binned(((point.seq, point.value) for point in points), first, last, cells)


def _importance(state: StreamHistory, key: Key, scale: float) -> str:
    explanation = state.latest.get(key)
    return "–" if explanation is None else measured(explanation.value, explanation.std_error, scale)


def _cells_of_courses(methods: Sequence[Method], left: int) -> Mapping[Method, int]:
    """Return the widths of the courses for which there is room."""
    each = left // len(methods) - GAP
    if each >= EACH_CELLS:
        return dict.fromkeys(methods, min(each, MAX_CELLS))
    return {methods[0]: min(left - GAP, MAX_CELLS)} if left >= MIN_CELLS + GAP else {}


def _courses(
    state: StreamHistory, method: Method, features: Sequence[str], cells: int
) -> list[Text]:
    """Return the courses of some features on one scale, with their changes."""
    first, last = span(state)
    rows = [course(state.series.get((f, method)), first, last, cells) for f in features]
    # the first estimates are means of a few observations, and would make all others flat
    settled = [value for row in rows for value in _settled(row)]
    low, high = min(settled, default=0.0), max(settled, default=0.0)
    texts = []
    for feature, row in zip(features, rows, strict=True):
        text = list(sparkline(row, min(low, 0.0), high))
        for change in state.changes:
            if change.kind == "drift" and (change.feature, change.method) == (feature, method):
                text[cell(change.seq, first, last, cells)] = mark(change)
        texts.append(_coloured("".join(text)))
    return texts


def mark(change: Change) -> str:
    """Return the sign of a change on a course: where it rose, and where it fell."""
    rose = change.before is None or change.after is None or change.after > change.before
    return MARKS[change.direction or ("rose" if rose else "fell")]


def _settled(row: Sequence[float | None]) -> list[float]:
    values = [value for value in row if value is not None]
    return values[len(values) // 20 + 1 :] or values


def _coloured(line: str) -> Text:
    text = Text(line, style="cyan", no_wrap=True)
    text.highlight_words(list(MARKS.values()), style="bold yellow")
    return text
