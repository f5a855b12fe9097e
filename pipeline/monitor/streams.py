"""All streams side by side in a terminal, of one pipeline or several."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from pipeline.monitor.courses import MARKS
from pipeline.monitor.dashboard.overview import Row, newest_first
from pipeline.monitor.dashboard.state import Operations
from pipeline.monitor.text import compared, printable
from schemas.change import METHOD_NAMES
from schemas.explanation import METHODS, Method

AROUND = 6
"""Lines of the table's heading, of what is told below it, and empty ones."""


GAP = 2
"""Between columns."""

NAME_CELLS = 30
"""A stream's name is cut there."""

FEWEST_CELLS = 12
"""Of what is said in words, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class PipelineRows:
    """What is known of one pipeline.

    Attributes
    ----------
    prefix
        Of its topics.
    rows
        Its streams.
    operations
        How far each role is.
    letters
        Dead letters, also those of no stream.
    has_more
        Whether it has streams that are not known, since there are too many.
    """

    prefix: str
    rows: Sequence[Row]
    operations: Operations
    letters: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class StreamsView:
    """A line for each pipeline, and a row for each stream, that with the newest change first.

    Attributes
    ----------
    pipelines
        At least one.
    """

    pipelines: Sequence[PipelineRows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for each in self.pipelines:
            yield _heading(each)
        rows = newest_first([row for each in self.pipelines for row in each.rows])
        if not rows:
            yield Text("waiting for records …")
            return
        height = options.max_height if console.is_terminal else None
        most = len(rows) if height is None else max(height - len(self.pipelines) - AROUND, 1)
        yield Text()
        method = next((m for m in METHODS if any(row.method == m for row in rows)), None)
        yield self._table(rows[:most], method, options.max_width)
        told = [f"{_count(len(rows) - most, 'stream')} more"] if len(rows) > most else []
        if any(each.has_more for each in self.pipelines):
            told.append("and more, for which there is no room")
        if method is not None:
            told.append(f"importance by {METHOD_NAMES[method]}")
        told.append("the newest change first")
        yield Text("; ".join(told), style="dim", no_wrap=True, overflow="ellipsis")

    def _table(self, rows: Sequence[Row], method: Method | None, width: int) -> Table:
        numbers = {name: cells for name, cells in _numbers(rows).items() if any(cells)}
        names = [printable(self._name(row)) for row in rows]
        widths = [min(max(map(len, ["stream", *names])), NAME_CELLS)]
        widths += [max(map(len, [name, *cells])) for name, cells in numbers.items()]
        left = max(width - sum(widths) - GAP * (len(widths) + 1), 2 * FEWEST_CELLS)
        important = left * 9 // 20
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for name, cells in zip(["stream", *numbers], widths, strict=True):
            justify: JustifyMethod = "left" if name == "stream" else "right"
            table.add_column(name, width=cells, justify=justify, no_wrap=True, overflow="ellipsis")
        for name, cells in (("most important", important), ("newest change", left - important)):
            table.add_column(name, width=cells, no_wrap=True, overflow="ellipsis")
        for i, row in enumerate(rows):
            table.add_row(
                Text(names[i], style="bold"),
                *(Text(cells[i]) for cells in numbers.values()),
                Text(_important(row, method)),
                Text(_change(row)),
            )
        return table

    def _name(self, row: Row) -> str:
        """Return as much of a stream's name as tells it from the others."""
        if len(self.pipelines) > 1:
            return row.stream
        return row.stream.removeprefix(self.pipelines[0].prefix)


def _heading(pipeline: PipelineRows) -> Text:
    rate = sum(row.rate for row in pipeline.rows)
    text = Text(printable(pipeline.prefix) or "(no prefix)", no_wrap=True, overflow="ellipsis")
    text.stylize("bold")
    text.append(f"  {_count(len(pipeline.rows), 'stream')} · {rate:,.0f}/s · ")
    letters = _count(pipeline.letters, "dead letter")
    text.append(letters, style="bold red" if pipeline.letters else "")
    operations = pipeline.operations
    if not operations.is_loaded and operations.to_read:
        text.append(f" · reading the past, {100 * operations.read // operations.to_read} %")
    if operations.roles:
        lags = ", ".join(f"{role['part']} {role['lag']:,}" for role in operations.roles)
        text.append(f" · lag: {lags}")
    return text


def _numbers(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return column → its cells; all empty where no stream has any."""
    has_letters = any(row.letters for row in rows)
    return {
        "records": [f"{row.records:,}" for row in rows],
        "/s": [f"{row.rate:,.0f}" for row in rows],
        "loss": ["" if row.loss is None else f"{row.loss:.3g}" for row in rows],
        "right": ["" if row.accuracy is None else f"{100 * row.accuracy:.1f} %" for row in rows],
        "awaited": ["" if row.labels is None else f"{row.labels.waiting:,}" for row in rows],
        "dead": [f"{row.letters:,}" if has_letters else "" for row in rows],
    }


def _important(row: Row, method: Method | None) -> str:
    by = "" if row.method in {None, method} else f"{METHOD_NAMES[row.method]}: "
    return by + ", ".join(f"{printable(each.feature)} {each.value:.2g}" for each in row.top)


def _change(row: Row) -> str:
    change = row.change
    if change is None:
        return ""
    if change["kind"] != "drift":
        return printable(f"{change['seq']:,} {change['kind']}")
    mark = MARKS.get(change["direction"] or "", "●")
    of = "" if change["method"] == "loss" else f" {METHOD_NAMES[change['method']]}"
    moved = " → ".join(compared(change["before"], change["after"]))
    return printable(f"{change['seq']:,} {mark} {change['feature'] or 'loss'}{of} {moved}")


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
