"""What a known drift did to the explanations, and how soon that was noticed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.monitor.history import History, Key, StreamHistory
from pipeline.monitor.text import compared, measured, printable
from schemas import Change, Explanation
from schemas.change import METHOD_NAMES
from schemas.explanation import Method


@dataclass(frozen=True, slots=True)
class Importance:
    """One explanation, in short."""

    feature: str
    seq: int
    value: float
    std_error: float


@dataclass(frozen=True, slots=True)
class Detection:
    """The first change of one explanation at or after the drift."""

    feature: str
    method: Method
    seq: int
    records_after: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a drift at a known place did.

    Attributes
    ----------
    stream
        Which stream.
    drift_seq
        The first observation that differs.
    records
        How many observations were predicted.
    before, after
        Method → the last explanation of each feature before the drift, and of all; the most
        important first.
    changes_before
        The changes that were detected before there was any: false alarms, or the model learning.
    detections
        The first detection of each (feature, method) from the drift on, the earliest first.
    loss
        The first change of the loss from the drift on; None if there was none.
    """

    stream: str
    drift_seq: int
    records: int
    before: dict[Method, list[Importance]]
    after: dict[Method, list[Importance]]
    changes_before: list[Change]
    detections: list[Detection]
    loss: Change | None

    @property
    def earliest(self) -> Detection | None:
        """The first of the detections; None if the drift was not noticed."""
        return self.detections[0] if self.detections else None


def summarize(history: History, drift_seq: int, *, stream: str | None = None) -> Summary:
    """Return what happened before and after a known drift.

    Parameters
    ----------
    history
        All that was published, made as ``History(drift_seq=drift_seq)``: it keeps the
        explanations just before the drift.
    drift_seq
        The seq of the first observation that differs.
    stream
        Which stream; None for the one that has the newest data.

    Raises
    ------
    ValueError
        If the history was not told of this drift, or has no such stream.
    """
    if history.drift_seq != drift_seq:
        raise ValueError(
            f"drift_seq is {drift_seq}, but the history was made with {history.drift_seq}"
        )
    name = stream or history.current
    if name is None or name not in history.streams:
        raise ValueError(f"the history has no stream {name!r}: {', '.join(history.streams)}")
    state = history.streams[name]
    drifts = [change for change in state.changes if change.kind == "drift"]
    return Summary(
        stream=name,
        drift_seq=drift_seq,
        records=state.predictions,
        before=_ranked(state, state.before_drift),
        after=_ranked(state, state.latest),
        changes_before=[change for change in drifts if change.seq < drift_seq],
        detections=_first_each(drifts, drift_seq),
        loss=next((c for c in drifts if c.method == "loss" and c.seq >= drift_seq), None),
    )


def _ranked(
    state: StreamHistory, explanations: Mapping[Key, Explanation]
) -> dict[Method, list[Importance]]:
    ranked: dict[Method, list[Importance]] = {}
    for method in state.methods:
        found = [
            Importance(e.feature, e.seq, e.value, e.std_error)
            for (_, m), e in explanations.items()
            if m == method
        ]
        ranked[method] = sorted(found, key=lambda importance: -importance.value)
    return ranked


def _first_each(drifts: Sequence[Change], drift_seq: int) -> list[Detection]:
    first: dict[Key, Detection] = {}
    for change in drifts:
        if change.seq < drift_seq or change.feature is None:
            continue
        if change.method is None or change.method == "loss":
            continue
        first.setdefault(
            (change.feature, change.method),
            Detection(
                feature=change.feature,
                method=change.method,
                seq=change.seq,
                records_after=change.seq - drift_seq,
                before=change.before,
                after=change.after,
            ),
        )
    return list(first.values())


def render_summary(summary: Summary, *, top: int = 3, loss_watched: bool = True) -> RenderableType:
    """Return the summary for a terminal.

    Parameters
    ----------
    summary
        What a drift did.
    top
        How many features to show before and after it.
    loss_watched
        Whether the loss could have told of the drift (``drift.loss.enabled``).
    """
    parts: list[RenderableType] = [
        Text(f"What the model relied on, before and after record {summary.drift_seq:,}", "bold"),
        _before_and_after(summary, top),
        Text(),
        Text(f"When the change was noticed: {_earliest(summary)}", "bold"),
    ]
    if summary.detections:
        parts.append(_detections(summary))
    parts.append(Text(f"By the model's loss: {_by_the_loss(summary, loss_watched)}"))
    n = len(summary.changes_before)
    of_loss = sum(change.method == "loss" for change in summary.changes_before)
    share = f", {of_loss:,} of them of the loss" if of_loss else ""
    parts.append(Text(f"Changes reported before record {summary.drift_seq:,}: {n:,}{share}"))
    return Group(*parts)


def _earliest(summary: Summary) -> str:
    first = summary.earliest
    if first is None:
        return "it was not"
    what = f"{METHOD_NAMES[first.method]} of {printable(first.feature)}"
    return _noticed(first.records_after, what, first.before, first.after)


def _by_the_loss(summary: Summary, loss_watched: bool) -> str:
    change = summary.loss
    if change is None:
        return "not at all" if loss_watched else "it is not watched"
    return _noticed(change.seq - summary.drift_seq, "it", change.before, change.after)


def _noticed(records: int, what: str, before: float | None, after: float | None) -> str:
    text = f"after {records:,} records"
    if before is None or after is None:
        return f"{text}, by {what}"
    verb = "rose" if after > before else "fell"
    return "{} ({} {} from {} to {})".format(text, what, verb, *compared(before, after))


def _before_and_after(summary: Summary, top: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for when in ("before", "at the end"):
        table.add_column(when, no_wrap=True, overflow="ellipsis", max_width=16)
        table.add_column("", justify="right", no_wrap=True)
    for method, after in summary.after.items():
        before = summary.before.get(method, [])
        scale = max((abs(i.value) for i in (*before, *after)), default=0.0)
        for rank in range(min(top, max(len(before), len(after)))):
            name = METHOD_NAMES[method] if rank == 0 else ""
            table.add_row(Text(name), *_cells(before, rank, scale), *_cells(after, rank, scale))
        table.add_section()
    return table


def _cells(importances: Sequence[Importance], rank: int, scale: float) -> tuple[Text, Text]:
    if rank >= len(importances):
        return Text("–"), Text()
    i = importances[rank]
    return Text(printable(i.feature)), Text(measured(i.value, i.std_error, scale))


def _detections(summary: Summary) -> Table:
    """Return one row a feature, in the order of their first detection."""
    methods = list(summary.after)
    found = {(d.feature, d.method): d for d in summary.detections}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("records later", no_wrap=True, overflow="ellipsis", max_width=16)
    for method in methods:
        table.add_column(METHOD_NAMES[method], justify="right", no_wrap=True)
    for feature in dict.fromkeys(d.feature for d in summary.detections):
        row = [found.get((feature, method)) for method in methods]
        cells = [Text(f"{d.records_after:,}" if d else "–") for d in row]
        table.add_row(Text(printable(feature)), *cells)
    return table
