"""Text charts of a feature's effect before and after a change."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import bar, plain_table, sparkline
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Label, Value
from fluxplain.schemas.wording import number, printable

MAX_CLASSES = 4
"""Most classes to show: those with the widest range of effects."""

MAX_ROWS = 20
"""Most points to show, evenly chosen."""

BAR_CELLS = 14

Lines = list[Any]
"""The effects of a curve; for a surface, a list of effects for each point of the first feature."""

T = TypeVar("T")


def render_curves(before: Curve | None, after: Curve | None) -> RenderableType:
    """Render the iPDP before and after, side by side and on one scale.

    A curve has a bar for each point. A pair's surface has a line for each point of the first
    feature, along the points of the second.
    """
    curves = {name: c for name, c in (("before", before), ("after", after)) if c is not None}
    effects = {name: _by_class(curve) for name, curve in curves.items()}
    numbers = [n for each in effects.values() for lines in each.values() for n in _flat(lines)]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    scale = max(abs(low), abs(high))
    labels = list(dict.fromkeys(label for each in effects.values() for label in each))
    labels.sort(key=lambda label: -_range([e[label] for e in effects.values() if label in e]))
    title = f"Effect on the output (iPDP), from {number(low, scale)} to {number(high, scale)}:"
    parts: list[RenderableType] = [Text(title, style="bold")]
    grids = [c.second_grid for c in curves.values() if c.second_grid]
    if grids:
        ends = f"{_point(grids[-1][0], grids[-1])} to {_point(grids[-1][-1], grids[-1])}"
        parts.append(Text(f"each line along the second feature, from {ends}"))
    for label in labels[:MAX_CLASSES]:
        if label is not None:
            parts.append(Text(f"class {printable(str(label))}"))
        halves = {name: effect[label] for name, effect in effects.items() if label in effect}
        parts.append(_side_by_side({n: curves[n] for n in halves}, halves, low, high))
    if len(labels) > MAX_CLASSES:
        parts.append(Text(f"and {len(labels) - MAX_CLASSES} classes with smaller differences"))
    return Group(*parts)


def _by_class(curve: Curve) -> dict[Label | None, Lines]:
    """Return class → effect; with at most two classes there is one effect, of class None."""
    if curve.classes is None:
        return {None: list(curve.effect)}
    pairs = zip(curve.classes, curve.effect, strict=False)
    return {label: effect for label, effect in pairs if isinstance(effect, list)}


def _side_by_side(
    curves: dict[str, Curve], halves: dict[str, Lines], low: float, high: float
) -> Table:
    table = plain_table(right=2)
    columns: list[dict[Any, tuple[Text, ...]]] = []
    by_point = not any(isinstance(point, float) for c in curves.values() for point in c.grid)
    for name, curve in curves.items():
        table.add_column("point", justify="right", no_wrap=True, max_width=14)
        table.add_column(f"{name}, at {curve.seq:,}", no_wrap=True)
        rows = [
            (Text(_point(point, curve.grid)), Text(_drawn(effect, low, high)))
            for point, effect in zip(curve.grid, halves[name], strict=False)
        ]
        # align categories by name, numeric points by rank
        keys: Sequence[Any] = curve.grid if by_point else range(len(rows))
        columns.append(dict(zip(keys, rows, strict=False)))
    everything = list(dict.fromkeys(key for column in columns for key in column))
    for key in _evenly(everything, MAX_ROWS):
        cells = [column.get(key, (Text("–"), Text())) for column in columns]
        table.add_row(*(text for pair in cells for text in pair))
    return table


def _point(point: Value, grid: Sequence[Value]) -> str:
    if not isinstance(point, float):
        return printable(str(point))
    return number(point, max(abs(each) for each in grid if isinstance(each, float)))


def _drawn(effect: Any, low: float, high: float) -> str:
    scale = max(abs(low), abs(high))
    if isinstance(effect, list):
        return sparkline(_evenly(list(_flat(effect)), MAX_ROWS), low, high)
    return f"{number(effect, scale)} {bar(effect, low, high, BAR_CELLS)}"


def _flat(lines: Any) -> Iterator[float]:
    if isinstance(lines, list):
        for each in lines:
            yield from _flat(each)
    else:
        yield lines


def _range(halves: Sequence[Lines]) -> float:
    numbers = list(_flat(list(halves)))
    return max(numbers, default=0.0) - min(numbers, default=0.0)


def _evenly(items: list[T], n: int) -> list[T]:
    """Return at most n evenly chosen items, including the first and the last."""
    if len(items) <= n:
        return items
    return [items[round(i * (len(items) - 1) / (n - 1))] for i in range(n)]
