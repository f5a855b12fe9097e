"""Summary of a known drift: importances before and after it, and the delay of detections."""

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import plain_table
from fluxplain.results.series import Estimate
from fluxplain.results.stream_results import TOP, Key, StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES, Method
from fluxplain.schemas.wording import compared, measured, plural, printable, signal_name, subject

Ranking = list[tuple[str, Estimate]]
"""Features and their importances, the largest first."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Changes before a known drift, and the first detection by each explanation and the loss."""

    drift_seq: int
    view: StreamView
    changes_before: list[Change]
    detections: dict[Key, Change]
    loss: Change | None

    def before(self, method: Method) -> Ranking:
        """Return the latest importances before the drift."""
        found = [(f, s.before(self.drift_seq)) for f, s in self.view.series[method].items()]
        known = [(feature, estimate) for feature, estimate in found if estimate is not None]
        return sorted(known, key=lambda each: -each[1].value)


def summarize(view: StreamView, drift_seq: int) -> Summary:
    """Summarize a known drift of a stream."""
    since = [change for change in view.drifts if change.seq >= drift_seq]
    # of changes at the same seq, whose records arrive in any order, the largest first
    since.sort(key=lambda each: (each.seq, -(each.effect_size or 0.0), each.feature or ""))
    detections: dict[Key, Change] = {}
    for change in since:
        if change.feature is not None and change.method is not None and change.method != "loss":
            detections.setdefault((change.feature, change.method), change)
    before = [change for change in view.drifts if change.seq < drift_seq]
    loss = next((change for change in since if change.method == "loss"), None)
    return Summary(drift_seq, view, before, detections, loss)


def render_summary(summary: Summary, *, loss_watched: bool = True) -> RenderableType:
    """Render a summary with the top features before and after the drift."""
    seq, first = summary.drift_seq, next(iter(summary.detections.values()), None)
    detected, by_loss = "it was not", "not at all" if loss_watched else "it is not watched"
    if first is not None:
        what = printable(f"{signal_name(first)} of {first.feature}")
        detected = _detected(first, seq, what)
    if summary.loss is not None:
        by_loss = _detected(summary.loss, seq, subject(summary.loss))
    n = len(summary.changes_before)
    of_loss = sum(change.method == "loss" for change in summary.changes_before)
    share = f", {of_loss:,} of them of the loss" if of_loss else ""
    return Group(
        Text(f"What the model relied on, before and after record {seq:,}", "bold"),
        _before_and_after(summary),
        Text(),
        Text(f"When the change was detected: {detected}", "bold"),
        *([_detections(summary)] if summary.detections else []),
        Text(f"By the model's loss: {by_loss}"),
        Text(f"Changes reported before record {seq:,}: {n:,}{share}"),
    )


def _detected(change: Change, drift_seq: int, what: str) -> str:
    text = f"after {plural(change.seq - drift_seq, 'record')}"
    if change.before is None or change.after is None:
        return f"{text}, by {what}"
    verb = "rose" if change.after > change.before else "fell"
    return "{} ({} {} from {} to {})".format(
        text, what, verb, *compared(change.before, change.after)
    )


def _before_and_after(summary: Summary) -> Table:
    table = plain_table(left=1)
    table.add_column("", no_wrap=True)
    for when in ("before", "at the end"):
        table.add_column(when, no_wrap=True, overflow="ellipsis", max_width=16)
        table.add_column("", justify="right", no_wrap=True)
    for method in summary.view.methods:
        before, after = summary.before(method), summary.view.ranked(method)
        scale = max((abs(estimate.value) for _, estimate in (*before, *after)), default=0.0)
        for rank in range(min(TOP, max(len(before), len(after)))):
            name = METHOD_NAMES[method] if rank == 0 else ""
            table.add_row(Text(name), *_cells(before, rank, scale), *_cells(after, rank, scale))
        table.add_section()
    return table


def _cells(ranking: Ranking, rank: int, scale: float) -> tuple[Text, Text]:
    if rank >= len(ranking):
        return Text("–"), Text()
    feature, estimate = ranking[rank]
    return Text(printable(feature)), Text(measured(estimate.value, estimate.std_error, scale))


def _detections(summary: Summary) -> Table:
    """Return one row per feature, in the order of their first detection."""
    table = plain_table(left=1)
    table.add_column("records later", no_wrap=True, overflow="ellipsis", max_width=16)
    for method in summary.view.methods:
        table.add_column(METHOD_NAMES[method], justify="right", no_wrap=True)
    for feature in dict.fromkeys(feature for feature, _ in summary.detections):
        row = [summary.detections.get((feature, method)) for method in summary.view.methods]
        cells = [Text(f"{each.seq - summary.drift_seq:,}" if each else "–") for each in row]
        table.add_row(Text(printable(feature)), *cells)
    return table
