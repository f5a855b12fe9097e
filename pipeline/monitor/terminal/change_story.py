"""Explains one change or incident in the terminal, with all evidence to verify it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import bar, plain_table, sparkline
from fluxplain.results.notes import NO_NOTES, Notes, in_brief, said
from fluxplain.results.pdp_history import Floats, drawable_curves, effect_of
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from fluxplain.schemas.change_wording import like, named, where, which, why
from fluxplain.schemas.methods import METHODS, Watched
from fluxplain.schemas.record import Label, Value
from fluxplain.schemas.times import readable
from fluxplain.schemas.wording import (
    STATUS,
    compared,
    in_short,
    measured,
    number,
    plural,
    printable,
    signal_name,
)

MEANING: dict[Watched, str] = {
    **{name: f"{each.meaning}, in units of the {each.unit}" for name, each in METHODS.items()},
    "loss": "loss of the model's predictions",
}

KINDS: dict[str, str] = {
    "cold-start": "a role started without the beginning of its log",
    "upgrade": "the software has other versions, and results may differ slightly",
    "model": "another model takes over, or its announcement was withdrawn",
    "schema": "observations have other features than before",
    "autocorrelation": "importances may be too small: replacements resemble the values",
    "gap": "messages that an explanation needed were lost before they were read",
    "input": "the values of a feature changed",
    "output": "the predictions changed",
}

MORE = "`fluxplain explain-change ID` explains each of them."


MAX_CLASSES = 4
"""Most classes to show: those with the widest range of effects."""

MAX_ROWS = 20
"""Most points to show, evenly chosen."""

BAR_CELLS = 14


class Half(NamedTuple):
    """A curve before or after the change, and the effect of one of its classes."""

    when: str
    curve: Curve
    effect: Floats


class SeqRange(NamedTuple):
    """A range of a stream's observations, both ends included."""

    stream: str
    first: int
    last: int


def range_of(changes: Sequence[Change]) -> SeqRange | None:
    """Return the observations that show all of these changes; None if unknown."""
    shown = [(e.replay_seq, e.seq, e.stream) for e in changes if e.replay_seq is not None]
    if not shown:
        return None
    return SeqRange(shown[0][2], min(first for first, _, _ in shown), max(s for _, s, _ in shown))


def render_story(
    change: Change, incident: Sequence[Change], look: str | None, notes: Notes = NO_NOTES
) -> RenderableType:
    """Render the explanation of a change; 80 columns are enough.

    ``incident`` holds all changes of its incident; ``look`` is a hint how to see the observations.
    """
    facts = _facts()
    facts.add_row("change", printable(change.id))
    facts.add_row("when", f"{printable(change.stream)} seq {change.seq:,}{_time(change)}")
    if change.kind != "drift":
        facts.add_row("what", f"{change.kind}: {KINDS[change.kind]}")
    if change.status is not None and change.status_seq is not None:
        facts.add_row("status", f"{STATUS[change.status]}, as of seq {change.status_seq:,}")
    _add_notes(facts, change, notes)
    _add_measures(facts, change)
    if change.rank_before is not None and change.rank_after is not None:
        of = "" if change.ranked is None else f" of {change.ranked}"
        facts.add_row("rank", f"{change.rank_before} → {change.rank_after}{of}")
    _add_loss(facts, change)
    if change.after_seq is not None and change.delay_bound is not None:
        began = f"about seq {change.after_seq:,}, {change.seq - change.after_seq:,} observations"
        facts.add_row("began", f"{began} earlier (at most {change.delay_bound:,})")
    if change.cause is not None:
        facts.add_row("why", why(change.cause))
    if change.region is not None:
        facts.add_row("where", printable(where(change.region)))
    if change.returns_to is not None:
        facts.add_row("shares", f"{like(change.returns_to)}  (of all importance, by feature)")
    for place, each in enumerate(change.evidence or ()):
        label = "" if place else "records"
        facts.add_row(label, printable(f"{named(each)}: {which(each)}"))
    parts: list[RenderableType] = [Text(printable(change.detail), style="bold"), facts]
    if curves := drawable_curves(change):
        parts += [Text(), *_curves(curves)]
    if change.incident is not None:
        others = [each for each in incident if each.id != change.id]
        count = plural(len(others), "other change") if others else "no other change"
        parts += [Text(), Text(f"Incident {printable(change.incident)}: {count}", style="bold")]
        parts += [_table(others, notes)] if others else []
    return Group(*parts, *_look(look))


def render_incident(
    changes: Sequence[Change], look: str | None, notes: Notes = NO_NOTES
) -> RenderableType:
    """Render the explanation of an incident from all of its changes, at least one."""
    first, last = changes[0], changes[-1]
    features = list(dict.fromkeys(each.feature for each in changes if each.feature))
    facts = _facts()
    until = "" if last.seq == first.seq else f" to {last.seq:,}"
    facts.add_row("when", f"{printable(first.stream)} seq {first.seq:,}{until}{_time(first)}")
    facts.add_row("features", printable(", ".join(features)))
    _add_loss(facts, first)
    title = f"Incident {printable(first.incident or '')}: {plural(len(changes), 'change')}"
    hint = Text(MORE, style="dim")
    return Group(
        Text(title, style="bold"), facts, Text(), _table(changes, notes), hint, *_look(look)
    )


def render_list(changes: Sequence[Change], notes: Notes = NO_NOTES) -> RenderableType:
    """Render a list of changes with their ids."""
    if not changes:
        return Text("There are no changes yet.")
    streams = {each.stream for each in changes}
    title = f"The latest changes{f' of {printable(*streams)}' if len(streams) == 1 else ''}"
    table = _table(changes, notes, streams=len(streams) > 1)
    return Group(Text(title, style="bold"), table, Text(MORE, style="dim"))


def _facts() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _time(change: Change) -> str:
    return "" if change.ts is None else f", ts {printable(readable(change.ts))}"


def _add_measures(facts: Table, change: Change) -> None:
    """Add the means before and after, their difference, and the smoothed value."""
    before, after, method = change.before, change.after, change.method
    if method is not None:
        meaning = "their share" if change.signal == "error" else MEANING[method]
        facts.add_row("measured", f"{signal_name(change)}: {meaning}")
    scale = max((abs(each) for each in (before, after) if each is not None), default=0.0)
    texts = compared(before, after, change.before_std_error, change.after_std_error)
    if before is not None:
        facts.add_row("before", texts[0])
    if after is not None:
        things = "explanations" if change.signal == "value" else "observations"
        which = "" if change.is_follow_up else "the last "
        last = "" if change.window is None else f"  (mean of {which}{change.window:,} {things})"
        facts.add_row("after", texts[1] + last)
    if before is not None and after is not None and change.is_step:
        verb = change.direction or ("rose" if after > before else "fell")
        of_what = "the larger" if method == "loss" else "all importance"
        if change.is_of_distribution:
            of_what = "the values"
        size = change.effect_size
        share = "" if size is None else f", {size:.0%} of {of_what}"
        effect = abs(after - before)
        facts.add_row("effect", f"{verb} by {number(effect, effect)}{share}")
    if change.value is not None:
        value = measured(change.value, change.std_error, max(scale, abs(change.value)))
        facts.add_row("smoothed", f"{value}  (the explanation at that time)")


def _add_loss(facts: Table, change: Change) -> None:
    before, after = change.loss_before, change.loss_after
    if before is not None and after is not None and not change.is_of_loss:
        facts.add_row("model's loss", " → ".join(compared(before, after)))


def _add_notes(facts: Table, change: Change, notes: Notes) -> None:
    note = notes.acknowledged(change.id)
    if note is not None:
        facts.add_row("acknowledged", said(note))
    mute = notes.muted(change.stream, change.feature)
    if mute is not None:
        facts.add_row("muted", said(mute))


def _table(changes: Sequence[Change], notes: Notes, *, streams: bool = False) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for each in changes:
        stream = f"{printable(each.stream)}: " if streams else ""
        sentence = Text(f"{stream}{in_short(each)}{_mark(each, notes)}")
        table.add_row(Text(printable(each.id)), Text(f"{each.seq:,}", style="dim"), sentence)
    return table


def _mark(change: Change, notes: Notes) -> str:
    note = notes.acknowledged(change.id)
    mark = "" if note is None else f"  {in_brief(note)}"
    return f"{mark}  (muted)" if notes.hides(change) else mark


def _look(look: str | None) -> list[RenderableType]:
    # a command must not be wrapped
    return [] if look is None else [Text(), Text(look, no_wrap=True, overflow="ignore")]


def _curves(curves: Sequence[tuple[str, Curve]]) -> Iterator[RenderableType]:
    """Yield the iPDP before and after, side by side and on one scale.

    A curve has a bar for each point. A pair's surface has a line for each point of the first
    feature, along the points of the second.
    """
    by_class: defaultdict[Label | None, list[Half]] = defaultdict(list)
    for when, curve in curves:
        for label, effect in effect_of(curve).items():
            by_class[label].append(Half(when, curve, effect))
    ends = {label: _ends(halves) for label, halves in by_class.items()}
    low, high = min(low for low, _ in ends.values()), max(high for _, high in ends.values())
    scale = max(abs(low), abs(high))
    title = f"Effect on the output (iPDP), from {number(low, scale)} to {number(high, scale)}:"
    yield Text(title, style="bold")
    if grid := curves[-1][1].second_grid:
        yield Text(
            f"each line along the second feature, from {_point(0, grid)} to {_point(-1, grid)}"
        )
    labels = sorted(by_class, key=lambda label: ends[label][0] - ends[label][1])
    for label in labels[:MAX_CLASSES]:
        if label is not None:
            yield Text(f"class {printable(str(label))}")
        yield _side_by_side(by_class[label], low, high)
    if len(labels) > MAX_CLASSES:
        yield Text(f"and {len(labels) - MAX_CLASSES} classes with smaller differences")


def _ends(halves: Sequence[Half]) -> tuple[float, float]:
    numbers = np.concatenate([half.effect.ravel() for half in halves])
    return float(numbers.min()), float(numbers.max())


def _side_by_side(halves: Sequence[Half], low: float, high: float) -> Table:
    table = plain_table(right=2)
    columns: list[dict[Value, tuple[Text, Text]]] = []
    # align categories, and numeric points that stay where they are; other points by rank
    kinds = {type(point) for half in halves for point in half.curve.grid}
    is_numeric = float in kinds and str not in kinds
    by_rank = is_numeric and not set.intersection(*(set(half.curve.grid) for half in halves))
    for when, curve, effect in halves:
        table.add_column("point", justify="right", no_wrap=True, max_width=14)
        table.add_column(f"{when}, at {curve.seq:,}", no_wrap=True)
        columns.append(
            {
                i if by_rank else point: (Text(_point(i, curve.grid)), _drawn(effect[i], low, high))
                for i, point in enumerate(curve.grid)
            }
        )
    keys = list(dict.fromkeys(key for column in columns for key in column))
    if is_numeric:
        keys.sort(key=float)
    for i in _evenly(len(keys)):
        cells = [column.get(keys[i], (Text("–"), Text())) for column in columns]
        table.add_row(*(text for pair in cells for text in pair))
    return table


def _point(i: int, grid: Sequence[Value]) -> str:
    point = grid[i]
    if not isinstance(point, float):
        return printable(str(point))
    return number(point, max(abs(each) for each in grid if isinstance(each, float)))


def _drawn(effect: Floats, low: float, high: float) -> Text:
    if effect.ndim:
        return Text(sparkline(effect[_evenly(len(effect))].tolist(), low, high))
    text = number(float(effect), max(abs(low), abs(high)))
    return Text(f"{text} {bar(float(effect), low, high, BAR_CELLS)}")


def _evenly(n: int) -> list[int]:
    """Return at most ``MAX_ROWS`` evenly chosen indices below n, including the first and last."""
    return [round(i) for i in np.linspace(0, n - 1, min(n, MAX_ROWS))]
