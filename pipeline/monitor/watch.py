"""Live view in a terminal: what each feature means to the model now, and what changed last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pipeline.monitor.bands import render_bands
from pipeline.monitor.courses import course, render_importances, sorted_features, span
from pipeline.monitor.history import History, Key, Point, Series, StreamHistory
from pipeline.monitor.sentences import in_short
from pipeline.monitor.spark import sparkline
from pipeline.monitor.text import printable
from schemas import Change
from schemas.change import METHOD_NAMES
from schemas.explanation import Method

LOSS_CELLS = 20
"""Width of the courses of loss and accuracy."""

FEATURES, CHANGES, BAND_LINES = 5, 3, 4
"""What is shown of each in a low terminal: of features and changes, however low it is."""

MAX_BAND_LINES = 8

AROUND_BAND = 2
"""Its title, and an empty line."""


@dataclass(frozen=True, slots=True)
class WatchView:
    """What a terminal shows of the history; 80 columns are enough, colour is not needed.

    More columns make the courses longer, and give one to each method. More lines show more
    features, then more changes, then a higher band; so it is also where the height is not known.

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
    feature
        Whose band to draw; None for the most important.
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
    feature: str | None = None
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
        methods = [m for m in state.methods if self.method in {None, m}]
        n_changes = min(len(state.changes), self.max_changes)
        if not methods:
            of = "" if self.method is None else f" by {METHOD_NAMES[self.method]}"
            yield Text(f"no explanation{of} yet: the explainers are still warming up")
            lines = Lines(0, n_changes, 0)
        else:
            told = self._told(state)
            yield from told
            # around them: two lines each of the view's and the table's heading, what is told of the
            # courses, and the heading of the changes with an empty line
            height, around = _height(console, options), len(above) + len(told) + 7
            room = None if height is None else height - around
            lines = Lines.of(room, len(state.features), n_changes)
            yield from _importances(state, methods, options.max_width, lines.features)
            yield from self._bands(state, methods, options.max_width, lines.band)
        yield Text()
        yield from _changes(state, lines.changes)

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
        if state.labels is not None:
            told = state.labels
            parts.append(
                f"labels: {told.joined:,} late, {told.waiting:,} awaited, {told.missing:,} missing"
            )
        text = Text(" · ".join(parts) + " · ")
        letters = _count(self.history.dead_letters, "dead letter")
        return text.append(letters, style="bold red" if self.history.dead_letters else "")

    def _told(self, state: StreamHistory) -> list[Text]:
        """Return what is not shown as it was asked for."""
        told = []
        if self.alpha is not None and state.alpha != self.alpha:
            rates = ", ".join(f"{rate:g}" for rate in state.alphas)
            shown = f"shown are those with {state.alpha:g} (there are: {rates})"
            told.append(f"no explanation with alpha {self.alpha:g}: {shown}")
        if self.feature is not None and self.feature not in state.features:
            told.append(f"no explanation of {printable(self.feature)} yet")
        return [Text(line, style="yellow", no_wrap=True, overflow="ellipsis") for line in told]

    def _bands(
        self, state: StreamHistory, methods: Sequence[Method], width: int, lines: int
    ) -> Sequence[RenderableType]:
        # what was asked for comes first, and by a method that explains it
        features = sorted_features(state, methods[0])
        features.sort(key=lambda feature: feature != self.feature)
        keys = [_first_key(state, feature, methods) for feature in features]
        known = [key for key in keys if key is not None]
        return [Text(), render_bands(state, known, width, lines)] if lines and known else []


@dataclass(frozen=True, slots=True)
class Lines:
    """How much of each part is shown."""

    features: int
    changes: int
    band: int

    @classmethod
    def of(cls, room: int | None, features: int, changes: int) -> "Lines":
        """Share the lines out that there are; None if there are enough.

        Examples
        --------
        >>> Lines.of(15, features=9, changes=8), Lines.of(12, features=9, changes=8)
        (Lines(features=6, changes=3, band=4), Lines(features=9, changes=3, band=0))
        """
        if room is None:
            return cls(features, changes, MAX_BAND_LINES)
        shown, news, band = min(features, FEATURES), min(changes, CHANGES), 0
        left = max(room - shown - news, 0)
        if left >= AROUND_BAND + BAND_LINES:
            band = BAND_LINES
            left -= AROUND_BAND + BAND_LINES
        more = min(features - shown, left)
        later = min(changes - news, left - more)
        higher = min(MAX_BAND_LINES - band, left - more - later) if band else 0
        return cls(shown + more, news + later, band + higher)


def _height(console: Console, options: ConsoleOptions) -> int | None:
    """Return how many lines there are; None where all are wanted, as in a file."""
    if options.height is not None:
        return options.height
    return options.max_height if console.is_terminal else None


def _first_key(state: StreamHistory, feature: str, methods: Sequence[Method]) -> Key | None:
    return next(((feature, m) for m in methods if (feature, m) in state.series), None)


def _importances(
    state: StreamHistory, methods: Sequence[Method], width: int, features: int
) -> Sequence[RenderableType]:
    first, last = span(state)
    told = f"courses: records {first:,} to {last:,}; changes: ▲ rose, ▼ fell"
    if features < len(state.features):
        told += f"; {_count(len(state.features) - features, 'feature')} more"
    table = render_importances(state, methods, width, features)
    return [table, Text(told, style="dim", no_wrap=True, overflow="ellipsis")]


def _changes(state: StreamHistory, n: int) -> Sequence[RenderableType]:
    if not state.changes:
        return [Text("no changes yet")]
    shown = state.changes[::-1][:n]
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
