"""Terminal view of all streams of one or several pipelines."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import MARKS, one_line, plain_table
from fluxplain.results.store import Store
from fluxplain.results.stream_results import Alphas, Row, latest_first, overview
from fluxplain.schemas.methods import METHOD_NAMES, METHODS, Method
from fluxplain.schemas.wording import compared, plural, printable, signal_name, subject

AROUND = 6
"""Lines for the table's header, the legend and blank lines."""

NAME_CELLS = 30
"""Longest stream name, in cells; longer ones are cut."""

MIN_CELLS = 12
"""Narrowest text column, in cells, however narrow the terminal is."""


class PipelineResults(NamedTuple):
    """A pipeline's topic prefix, results, and smoothing rates to show."""

    prefix: str
    store: Store
    alphas: Alphas


@dataclass(frozen=True, slots=True)
class StreamsView:
    """A line for each pipeline (at least one) and a row for each stream.

    ``now`` is a time of the clock given to :meth:`Store.add`.
    """

    pipelines: Sequence[PipelineResults]
    now: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with ExitStack() as stack:
            for each in self.pipelines:
                stack.enter_context(each.store.lock)
            parts = list(self._parts(console, options))
        yield from parts

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        rows: list[Row] = []
        for prefix, store, alphas in self.pipelines:
            found = overview(store.streams, alphas, None, self.now, store.notes)
            yield _heading(prefix, found, store)
            rows += found
        if not rows:
            yield Text("waiting for records …")
            return
        rows = latest_first(rows)
        height = options.max_height if console.is_terminal else None
        most = len(rows) if height is None else max(height - len(self.pipelines) - AROUND, 1)
        yield Text()
        method = next((m for m in METHODS if any(row.method == m for row in rows)), None)
        yield self._table(rows[:most], method)
        legend = [plural(len(rows) - most, "more stream")] if len(rows) > most else []
        if any(each.store.has_more_streams for each in self.pipelines):
            legend.append("further streams exceed the limit")
        if method is not None:
            legend.append(f"importance by {METHOD_NAMES[method]}")
        yield one_line("; ".join([*legend, "latest change first"]), style="dim")

    def _table(self, rows: Sequence[Row], method: Method | None) -> Table:
        numbers = {name: cells for name, cells in _numbers(rows).items() if any(cells)}
        # with several pipelines, the prefix distinguishes their streams
        prefix = self.pipelines[0].prefix if len(self.pipelines) == 1 else ""
        table = plain_table()
        table.expand = True
        one: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"}
        table.add_column("stream", max_width=NAME_CELLS, **one)
        for name in numbers:
            table.add_column(name, justify="right", **one)
        for name in ("most important", "latest change"):
            table.add_column(name, ratio=1, width=MIN_CELLS, **one)
        for i, row in enumerate(rows):
            table.add_row(
                Text(printable(row.stream.removeprefix(prefix)), style="bold"),
                *(Text(cells[i]) for cells in numbers.values()),
                Text(_important(row, method)),
                Text(_change(row), style="" if row.note is None else "dim"),
            )
        return table


def _heading(prefix: str, rows: Sequence[Row], store: Store) -> Text:
    text = one_line(printable(prefix) or "(no prefix)")
    text.stylize("bold")
    rate = sum(row.rate for row in rows)
    text.append(f"  {plural(len(rows), 'stream')} · {rate:,.0f}/s · ")
    letters = store.letter_count
    text.append(plural(letters, "dead letter"), style="bold red" if letters else "")
    status = store.status
    if not status.is_loaded and status.to_read:
        text.append(f" · reading the history, {100 * status.read // status.to_read} %")
    if status.roles:
        lags = ", ".join(f"{role.part} {role.lag:,}" for role in status.roles)
        text.append(f" · lag: {lags}")
    return text


def _numbers(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return column → its cells; all are empty if no stream has a value."""
    results = [row.results for row in rows]
    has_letters = any(each.letters for each in results)
    return {
        "records": [f"{each.records:,}" for each in results],
        "rate": [f"{row.rate:,.0f}/s" for row in rows],
        "loss": ["" if row.loss is None else f"{row.loss:.3g}" for row in rows],
        "acc.": ["" if row.accuracy is None else f"{100 * row.accuracy:.1f} %" for row in rows],
        "pending": ["" if each.labels is None else f"{each.labels.waiting:,}" for each in results],
        "dead": [f"{each.letters:,}" if has_letters else "" for each in results],
    }


def _important(row: Row, method: Method | None) -> str:
    by = "" if row.method in {None, method} else f"{METHOD_NAMES[row.method]}: "
    return by + ", ".join(f"{printable(f)} {s.newest.value:.2g}" for f, s in row.top)


def _change(row: Row) -> str:
    change = row.change
    if change is None:
        return ""
    if change.is_notice:
        return printable(f"{change.seq:,} {change.kind}")
    mark = MARKS.get(change.direction or "", "●")
    of = "" if change.feature is None else f"{change.feature} "
    what = subject(change) if change.is_of_distribution else f"{of}{signal_name(change)}"
    moved = " → ".join(compared(change.before, change.after))
    return printable(f"{change.seq:,} {mark} {what} {moved}")
