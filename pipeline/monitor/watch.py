"""Live view in a terminal: what each feature means to the model now, and what changed last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pipeline.monitor.courses import course, render_importances, span
from pipeline.monitor.history import METHOD_NAMES, History, Point, Series, StreamHistory
from pipeline.monitor.sentences import in_short
from pipeline.monitor.spark import sparkline
from pipeline.monitor.text import printable
from schemas import Change
from schemas.explanation import Method

LOSS_CELLS = 20
"""Width of the courses of loss and accuracy."""

MIN_FEATURES = 5
"""Features that are shown, however low the terminal is."""


@dataclass(frozen=True, slots=True)
class WatchView:
    """What a terminal shows of the history; 80 columns are enough, colour is not needed.

    More columns make the courses longer, and give one to each method. Where the height is known,
    the least important features that have no room are left out.

    Attributes
    ----------
    history
        What has been published so far.
    title
        The first line.
    stream
        Which stream to show; None for one that has new data.
    method
        Which method; None for all.
    alpha
        Which smoothing rate is wanted, so that another one can be told; None for any.
    lags
        Role → messages that it has still to read; None if that is not known.
    now
        The time in seconds, of the clock that :meth:`History.add` was given; None for no rate.
    max_changes
        How many changes to show, the newest.
    """

    history: History
    title: str = "fluxplain"
    stream: str | None = None
    method: Method | None = None
    alpha: float | None = None
    lags: Mapping[str, int] | None = None
    now: float | None = None
    max_changes: int = 8

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.stream or self.history.current
        state = self.history.streams.get(shown) if shown is not None else None
        yield self._heading(shown)
        if shown is None or state is None:
            yield Text(f"waiting for records{f' of {shown}' if shown else ''} …")
            yield from _last_dead_letter(self.history)
            return
        yield self._numbers(state)
        above = [*_losses(state), *_last_dead_letter(self.history), Text()]
        yield from above
        height = None if options.height is None else options.height - len(above) - 2
        yield from self._importances(state, options.max_width, height)
        yield Text()
        yield from self._changes(state)

    def _heading(self, shown: str | None) -> Text:
        heading = Text(printable(self.title), style="bold")
        if shown is not None:
            n = len(self.history.streams)
            others = f", one of {n} streams" if n > 1 else ""
            heading.append(f"  {printable(shown)}{others}", style="not bold dim")
        return heading

    def _numbers(self, state: StreamHistory) -> Text:
        parts = [_count(state.predictions, "record")]
        if self.now is not None:
            parts.append(f"{state.throughput.rate(self.now):,.0f}/s")
        if self.lags is not None:
            lags = ", ".join(f"{role} {lag:,}" for role, lag in self.lags.items())
            parts.append(f"lag: {lags}")
        text = Text(" · ".join(parts) + " · ")
        letters = _count(self.history.dead_letters, "dead letter")
        return text.append(letters, style="bold red" if self.history.dead_letters else "")

    def _importances(
        self, state: StreamHistory, width: int, height: int | None
    ) -> Sequence[RenderableType]:
        methods = [m for m in state.methods if self.method in {None, m}]
        if not methods:
            of = "" if self.method is None else f" by {METHOD_NAMES[self.method]}"
            return [Text(f"no explanation{of} yet: the explainers are still warming up")]
        parts: list[RenderableType] = []
        if self.alpha is not None and state.alpha != self.alpha:
            rates = ", ".join(f"{rate:g}" for rate in state.alphas)
            told = f"no explanation with alpha {self.alpha:g}: shown are those with {state.alpha:g}"
            parts.append(Text(f"{told} (there are: {rates})", style="yellow"))
        room = None
        if height is not None:
            # a heading with a line, what is told of the courses, and the changes with theirs
            room = height - 5 - len(parts) - min(len(state.changes), self.max_changes)
            room = max(room, MIN_FEATURES)
        parts.append(render_importances(state, methods, width, room))
        first, last = span(state)
        told = f"courses: records {first:,} to {last:,}; changes: ▲ rose, ▼ fell"
        if room is not None and room < len(state.features):
            told += f"; {len(state.features) - room:,} features more"
        return [*parts, Text(told, style="dim", no_wrap=True, overflow="ellipsis")]

    def _changes(self, state: StreamHistory) -> Sequence[RenderableType]:
        if not state.changes:
            return [Text("no changes yet")]
        shown = state.changes[::-1][: self.max_changes]
        count = _count(state.change_count, "change")
        incidents = any(change.incident for change in shown)
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for change in shown:
            row = [
                Text(f"{change.seq:,}", style="dim"),
                Text(printable(change.id)),
                _change(change),
            ]
            table.add_row(*row)
        of = ", @ the incident" if incidents else ""
        return [Text(f"{count}, the newest first (at record, id{of})", style="bold"), table]


def _losses(state: StreamHistory) -> list[Text]:
    """Return loss and accuracy, each with its course."""
    first, last = span(state)
    parts = []
    if state.mean_loss is not None:
        parts.append(f"mean loss {state.mean_loss:.4g} {_line(state.loss_course, first, last)}")
    if state.accuracy is not None:
        line = _line(state.accuracy_course, first, last)
        parts.append(f"accuracy {100 * state.accuracy:.1f} % {line}")
    return [Text(" · ".join(part.rstrip() for part in parts))] if parts else []


def _line(series: Series[Point], first: int, last: int) -> str:
    row = course(series, first, last, LOSS_CELLS)
    values = [value for value in row if value is not None]
    return sparkline(row, min(values), max(values)).strip() if values else ""


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _last_dead_letter(history: History) -> list[Text]:
    letter = history.last_dead_letter
    if letter is None:
        return []
    where = f"{letter.topic}-{letter.partition} offset {letter.offset:,}"
    line = printable(f"last dead letter: {where}: {letter.reason}")
    return [Text(line, style="red", no_wrap=True, overflow="ellipsis")]


def _change(change: Change) -> Text:
    text = Text(in_short(change), style="" if change.kind == "drift" else "yellow")
    if change.incident is not None:
        text.append(f"  @{printable(change.incident.rpartition('@')[2])}", style="dim")
    return text
