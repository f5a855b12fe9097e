"""Terminal view of one stream: importances, their trends, and the latest changes."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.importances import (
    render_bands,
    render_importances,
    sorted_features,
)
from fluxplain.monitor.terminal.sparklines import binned, one_line, sparkline
from fluxplain.results.headline import DEFAULT, Limits, Tone, headline
from fluxplain.results.notes import Notes, in_brief
from fluxplain.results.store import Store
from fluxplain.results.stream_results import StreamResults, StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.schemas.wording import in_short, plural, printable

LOSS_CELLS = 20
"""Width of the trends of loss and accuracy, in cells."""

LOSS_POINTS = 300

FEATURES, CHANGES, BAND_LINES = 5, 3, 4
"""Lines of each part in a low terminal. The band disappears first; the others never shrink further.
"""

MAX_CHANGES, MAX_BAND_LINES = 8, 8

LEAST_BAND_LINES = 2
"""Lines of the band below which it disappears."""

TALL = 40
"""Lines from which on a terminal has room for the whole headline."""

AROUND_BAND = 2
"""Lines for the band's title and a blank line."""

AROUND_PARTS = 7
"""Lines of the view's heading (2), the table's heading (2), the legend of the trends (1), and the
heading of the changes with a blank line (2)."""


STYLES: dict[Tone, str] = {
    "calm": "bold green",
    "changed": "bold yellow",
    "quiet": "bold",
    "late": "bold red",
    "lost": "bold red",
    "waiting": "bold",
}

WELL: frozenset[Tone] = frozenset({"calm", "changed", "quiet"})
"""Tones of a pipeline that keeps up."""


@dataclass(frozen=True, slots=True)
class WatchView:
    """Terminal view of a store; 80 columns are enough, and colour is not needed.

    More columns lengthen the trends, and give each method one. More lines show more features, then
    more changes, then a higher band. If the height is unknown, everything is shown.

    ``stream``, ``method`` and ``feature`` choose what to show; None stands for a stream with new
    data, all methods, the most important feature. ``now`` is a time of the clock given to
    :meth:`Store.add`; without it no throughput is shown.
    """

    store: Store
    title: str = "fluxplain"
    stream: str | None = None
    method: Method | None = None
    feature: str | None = None
    alphas: Sequence[float] = ()
    limits: Limits = DEFAULT
    now: float | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.stream or self.store.current
        results = self.store.streams.get(shown) if shown is not None else None
        yield self._heading(shown)
        if results is None:
            yield Text(f"waiting for records{f' of {shown}' if shown else ''} …")
            yield from self._last_dead_letter()
            return
        view = results.at(self.alphas)
        yield self._numbers(view)
        height = _height(console, options)
        is_low = height is not None and height < TALL
        state = [
            line
            for text in self._headline(results, is_low=is_low)
            for line in text.wrap(console, options.max_width)
        ]
        above = [*_losses(view), *self._last_dead_letter(), *state]
        yield from above
        methods = [m for m in view.methods if self.method in {None, m}]
        lines = Lines(0, min(len(results.changes), MAX_CHANGES), 0)
        if not methods:
            of = "" if self.method is None else f" by {METHOD_NAMES[self.method]}"
            yield Text(f"no explanation{of} yet: the explainers are still warming up")
        else:
            warnings = self._warnings(view)
            yield from warnings
            room = None if height is None else height - len(above) - len(warnings) - AROUND_PARTS
            lines = Lines.of(room, len(view.features), lines.changes)
            yield from _importances(view, methods, options.max_width, lines.features)
            yield from self._bands(view, methods, options.max_width, lines.band)
        yield Text()
        yield from _changes(view, lines.changes, self.store.notes)

    def _heading(self, shown: str | None) -> Text:
        heading = Text(printable(self.title), style="bold")
        if shown is not None:
            n = len(self.store.streams)
            others = f", one of {n} streams" if n > 1 else ""
            heading.append(f"  {printable(shown)}{others}", style="not bold dim")
        return heading

    def _headline(self, results: StreamResults, *, is_low: bool) -> list[Text]:
        """Return the paragraphs of the headline; a low terminal has those that matter most."""
        state = headline(results, self.store.status, self.alphas, self.limits, self.store.notes)
        is_well, style = state.tone in WELL, STYLES[state.tone]
        change = Text(printable(state.change), style=style if is_well else "")
        pipeline = Text(printable(state.pipeline), style="" if is_well else style)
        if is_low:
            return [change] if is_well else [pipeline, change]
        return [change, Text(f"{printable(state.relies_on)}. ").append_text(pipeline), Text()]

    def _numbers(self, view: StreamView) -> Text:
        results = view.results
        parts = [plural(results.records, "record")]
        if self.now is not None:
            parts.append(f"{results.throughput.rate(self.now):,.0f}/s")
        if self.store.status.roles:
            lags = [f"{role.part} {role.lag:,}" for role in self.store.status.roles]
            parts.append(f"lag: {', '.join(lags)}")
        if results.labels is not None:
            n = results.labels
            parts.append(f"labels: {n.joined:,} late, {n.waiting:,} pending, {n.missing:,} missing")
        letters = self.store.letter_count
        style = "bold red" if letters else ""
        return Text(" · ".join([*parts, ""])).append(plural(letters, "dead letter"), style)

    def _last_dead_letter(self) -> list[Text]:
        if not self.store.letters:
            return []
        letter = self.store.letters[-1]
        where = f"{letter['topic']}-{letter['partition']} offset {letter['offset']:,}"
        return [one_line(printable(f"last dead letter: {where}: {letter['reason']}"), style="red")]

    def _warnings(self, view: StreamView) -> list[Text]:
        """Return warnings about options that match nothing."""
        lines = []
        if self.alphas and view.alpha != self.alphas[0]:
            present = ", ".join(f"{alpha:g}" for alpha in view.results.alphas())
            shown = f"showing alpha {view.alpha:g} (available: {present})"
            lines.append(f"no explanation with alpha {self.alphas[0]:g}: {shown}")
        if self.feature is not None and self.feature not in view.features:
            lines.append(f"no explanation of {printable(self.feature)} yet")
        return [one_line(line, style="yellow") for line in lines]

    def _bands(
        self, view: StreamView, methods: Sequence[Method], width: int, lines: int
    ) -> Sequence[RenderableType]:
        # the chosen feature comes first; each is shown by the first method that explains it
        features = sorted_features(view, methods[0])
        features.sort(key=lambda feature: feature != self.feature)
        series = view.series
        keys = [next(((f, m) for m in methods if f in series[m]), None) for f in features]
        known = [key for key in keys if key is not None]
        return [Text(), render_bands(view, known, width, lines)] if lines and known else []


@dataclass(frozen=True, slots=True)
class Lines:
    """Numbers of features, changes and lines of the band to show."""

    features: int
    changes: int
    band: int

    @classmethod
    def of(cls, room: int | None, features: int, changes: int) -> "Lines":
        """Divide the available lines; None stands for enough."""
        if room is None:
            return cls(features, changes, MAX_BAND_LINES)
        shown, news, band = min(features, FEATURES), min(changes, CHANGES), 0
        left = max(room - shown - news, 0)
        if left >= AROUND_BAND + LEAST_BAND_LINES:
            band = min(left - AROUND_BAND, BAND_LINES)
            left -= AROUND_BAND + band
        more = min(features - shown, left)
        later = min(changes - news, left - more)
        higher = min(MAX_BAND_LINES - band, left - more - later) if band else 0
        return cls(shown + more, news + later, band + higher)


def _height(console: Console, options: ConsoleOptions) -> int | None:
    """Return the number of available lines; None if unlimited, as in a file."""
    if options.height is not None:
        return options.height
    return options.max_height if console.is_terminal else None


def _importances(
    view: StreamView, methods: Sequence[Method], width: int, features: int
) -> Sequence[RenderableType]:
    first, last = view.span()
    legend = f"trends: records {first:,} to {last:,}; changes: ▲ rose, ▼ fell"
    if features < len(view.features):
        legend += f"; {plural(len(view.features) - features, 'more feature')}"
    return [render_importances(view, methods, width, features), one_line(legend, style="dim")]


def _changes(view: StreamView, n: int, notes: Notes) -> Sequence[RenderableType]:
    """Render the latest changes, without those of muted features."""
    if not view.changes:
        return [Text("no changes yet")]
    heard = [change for change in view.changes if not notes.hides(change)]
    shown = heard[::-1][:n]
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for change in shown:
        table.add_row(
            Text(f"{change.seq:,}", style="dim"), Text(printable(change.id)), _line(change, notes)
        )
    count = plural(view.results.change_count, "change")
    incidents = ", @ incident" if any(change.incident for change in shown) else ""
    title = f"{count}, latest first (record, id{incidents})"
    n_hidden = len(view.changes) - len(heard)
    hidden = f"; {n_hidden:,} muted (`fluxplain mute`)" if n_hidden else ""
    return [Text(title, style="bold").append(hidden, style="not bold dim"), table]


def _line(change: Change, notes: Notes) -> Text:
    note = notes.acknowledged(change.id)
    style = "yellow" if change.is_notice else ""
    text = Text(in_short(change), style="dim" if note is not None else style)
    if change.incident is not None:
        text.append(f"  @{printable(change.incident.rpartition('@')[2])}", style="dim")
    if note is not None:
        text.append(f"  {in_brief(note)}")
    return text


def _losses(view: StreamView) -> list[Text]:
    """Return loss and accuracy, each with its trend."""
    loss, accuracy = view.results.performance.newest
    trend = view.results.performance.trend(LOSS_POINTS)
    parts = []
    if loss is not None:
        parts.append(f"mean loss {loss:.4g} {_trend_line(view, trend['seq'], trend['loss'])}")
    if accuracy is not None:
        line = _trend_line(view, trend["seq"], trend["accuracy"])
        parts.append(f"accuracy {100 * accuracy:.1f} % {line}")
    return [Text(" · ".join(parts))] if parts else []


def _trend_line(view: StreamView, seqs: Sequence[int], means: Sequence[float | None]) -> str:
    known = {seq: mean for seq, mean in zip(seqs, means, strict=True) if mean is not None}
    row = binned(list(known), list(known.values()), view.span(), LOSS_CELLS)
    return sparkline(row, min(known.values()), max(known.values())).strip()
