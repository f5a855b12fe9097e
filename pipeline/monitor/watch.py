"""Live view in a terminal: what each feature means to the model now, and what changed last."""

import math
from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.monitor.history import METHOD_NAMES, History, StreamHistory
from pipeline.monitor.text import decimals, measured, printable
from schemas import Change, Explanation
from schemas.explanation import Method

BAR_CELLS = 10

EIGHTHS = " ▏▎▍▌▋▊▉█"


def render(
    history: History,
    *,
    title: str = "fluxplain",
    stream: str | None = None,
    now: float | None = None,
    max_changes: int = 8,
) -> RenderableType:
    """Return what a terminal shows of the history; 80 columns are enough, colour is not needed.

    Parameters
    ----------
    history
        What has been published so far.
    title
        The first line.
    stream
        Which stream to show; None for one that has new data.
    now
        The time in seconds, of the clock that :meth:`History.add` was given; None for no rate.
    max_changes
        How many changes to show, the newest.
    """
    shown = stream or history.current
    state = history.streams.get(shown) if shown is not None else None
    parts: list[RenderableType] = [_heading(history, title, shown)]
    if shown is None or state is None:
        parts.append(Text(f"waiting for records{f' of {shown}' if shown else ''} …"))
        return Group(*parts, *_last_dead_letter(history))
    parts += [_numbers(history, state, now), *_last_dead_letter(history), Text()]
    if state.latest:
        parts.append(_importances(state))
    else:
        parts.append(Text("no explanation yet: the explainers are still warming up"))
    parts += [Text(), *_changes(state, max_changes)]
    return Group(*parts)


def sorted_features(state: StreamHistory, method: Method) -> list[str]:
    """Return the features by importance; those that read the same stay in their order."""
    scale = largest(state, method)

    def rank(feature: str) -> float:
        explanation = state.latest.get((feature, method))
        if explanation is None:
            return math.inf
        digits = decimals(scale)
        return -(explanation.value if digits is None else round(explanation.value, digits))

    return sorted(state.features, key=rank)


def largest(state: StreamHistory, method: Method) -> float:
    """Return the largest importance that a method gives to a feature."""
    return max((abs(e.value) for (_, m), e in state.latest.items() if m == method), default=0.0)


def _heading(history: History, title: str, shown: str | None) -> Text:
    heading = Text(printable(title), style="bold")
    if shown is not None:
        others = f", one of {len(history.streams)} streams" if len(history.streams) > 1 else ""
        heading.append(f"  {printable(shown)}{others}", style="not bold dim")
    return heading


def _numbers(history: History, state: StreamHistory, now: float | None) -> Text:
    parts = [_count(state.predictions, "record")]
    if now is not None:
        parts.append(f"{state.throughput.rate(now):,.0f}/s")
    if state.mean_loss is not None:
        parts.append(f"mean loss {state.mean_loss:.4g}")
    if state.accuracy is not None:
        parts.append(f"accuracy {100 * state.accuracy:.1f} %")
    text = Text(" · ".join(parts) + " · ")
    letters = _count(history.dead_letters, "dead letter")
    return text.append(letters, style="bold red" if history.dead_letters else "")


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def _last_dead_letter(history: History) -> list[Text]:
    letter = history.last_dead_letter
    if letter is None:
        return []
    where = f"{letter.topic}-{letter.partition} offset {letter.offset:,}"
    line = printable(f"last dead letter: {where}: {letter.reason}")
    return [Text(line, style="red", no_wrap=True, overflow="ellipsis")]


def _importances(state: StreamHistory) -> Table:
    methods = state.methods
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("feature", min_width=8, max_width=30)  # the only one that may be cut
    for method in methods:
        table.add_column(METHOD_NAMES[method], justify="right", no_wrap=True)
        if method == methods[0]:
            table.add_column("", width=BAR_CELLS, no_wrap=True)
    scales = {method: largest(state, method) for method in methods}
    for feature in sorted_features(state, methods[0]):
        cells = [Text(printable(feature), no_wrap=True, overflow="ellipsis")]
        for method in methods:
            explanation = state.latest.get((feature, method))
            cells.append(_importance(explanation, scales[method]))
            if method == methods[0]:
                cells.append(Text(_bar(explanation, scales[method]), style="cyan"))
        table.add_row(*cells)
    return table


def _importance(explanation: Explanation | None, scale: float) -> Text:
    if explanation is None:
        return Text("–")
    return Text(measured(explanation.value, explanation.std_error, scale))


def _bar(explanation: Explanation | None, scale: float) -> str:
    """Return a bar as long as the importance; none where it is not above zero."""
    if explanation is None or explanation.value <= 0.0 or not scale:
        return ""
    eighths = round(8 * BAR_CELLS * explanation.value / scale)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _changes(state: StreamHistory, max_changes: int) -> Sequence[RenderableType]:
    if not state.changes:
        return [Text("no changes yet")]
    newest = state.changes[::-1][:max_changes]
    count = _count(state.change_count, "change")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for change in newest:
        table.add_row(Text(f"{change.seq:,}", style="dim"), _change(change))
    return [Text(f"{count}, the newest first (at record)", style="bold"), table]


def _change(change: Change) -> Text:
    if change.kind == "drift":
        return Text(printable(change.detail))
    return Text(f"{change.kind}: ", style="bold yellow").append(printable(change.detail), style="")
