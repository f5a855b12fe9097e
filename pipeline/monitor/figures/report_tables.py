"""Tables of the figures' numbers, for screen readers and for reading off values."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fluxplain.monitor.figures.before_after import drawable_curves
from fluxplain.monitor.figures.curve_panels import effect_of, plain
from fluxplain.monitor.figures.effect_curves import Effects
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import METHOD_NAMES
from fluxplain.schemas.wording import compared, measured, printable, signal_name

MAX_CURVE_ROWS = 50


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    links: Mapping[str, str] | None = None,
) -> str:
    """Return an HTML table of plain text; cells from column ``texts`` on are numbers.

    The first cell of a row is its header. ``links`` maps a cell's text to the id it links to.
    """

    def cell(i: int, text: str, *, is_header: bool = False) -> str:
        kind = ' class="text"' if i < texts else ""
        place = None if is_header or i == 0 else (links or {}).get(text)
        shown = safe(text) if place is None else f'<a href="#{place}">{safe(text)}</a>'
        if is_header:
            return f'<th scope="col"{kind}>{shown}</th>'
        return f'<th scope="row"{kind}>{shown}</th>' if i == 0 else f"<td{kind}>{shown}</td>"

    head = "".join(cell(i, name, is_header=True) for i, name in enumerate(header))
    cells = ["".join(cell(i, text) for i, text in enumerate(row)) for row in rows]
    body = "".join(f"<tr>{row}</tr>\n" for row in cells)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{safe(caption)}">'
        f"<table><caption>{safe(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>\n"
    )


def importance_table(view: StreamView) -> str:
    """Return the newest importance of each feature by each method."""
    methods, series = view.methods, view.series
    scales = {method: view.largest(method) for method in methods}
    ranked = [feature for feature, _ in view.ranked(methods[0])]
    rows = []
    for feature in [*ranked, *(f for f in view.features if f not in ranked)]:
        newest = [s.newest if (s := series.get((feature, m))) else None for m in methods]
        cells = [
            "–" if e is None else measured(e.value, e.std_error, scales[m])
            for m, e in zip(methods, newest, strict=True)
        ]
        rows.append([feature, *cells])
    header = ["feature", *(METHOD_NAMES[m] for m in methods)]
    return table("Importance now ± standard error", header, rows)


def curve_tables(effects: Iterable[Effects]) -> str:
    """Return the curve of each feature, point by point."""
    return "".join(_curve_table(f"iPDP of {each.feature}", each.now) for each in effects)


def changes_table(changes: Sequence[Change], places: Mapping[str, str]) -> str:
    """Return one row per change; ``places`` maps a change's id to the id of its figure."""
    rows = []
    for change in changes:
        errors = change.before_std_error, change.after_std_error
        ranks = (change.rank_before, change.rank_after)
        rows.append(
            [
                f"{change.seq:,}",
                change.feature or "–",
                signal_name(change),
                *compared(change.before, change.after, *errors),
                "–" if None in ranks else f"{ranks[0]} → {ranks[1]}",
                "–" if change.incident is None else change.incident.rpartition("@")[2],
                change.id,
            ]
        )
    header = ["seq", "feature", "method", "before", "after", "rank", "incident", "id"]
    caption = "Changes in order; an incident is named by the seq of its first change"
    return table(caption, header, rows, texts=3, links=places)


def story_tables(context: ChangeContext) -> str:
    """Return the numbers of one change's figure."""
    change = context.change
    tables = [
        _curve_table(f"iPDP {when}, at seq {curve.seq:,}", curve)
        for when, curve in drawable_curves(change)
        if curve.second_grid is None
    ]
    method = "isage" if context.moves("isage") else change.method
    if method is None or method == "loss":
        return "".join(tables)
    rows = []
    for move in context.moves(method):
        scale = max(abs(move.before.mean), abs(move.after.mean))
        means = [measured(m.mean, m.std_error, scale) for m in (move.before, move.after)]
        rows.append([move.feature, *means, measured(move.difference, move.std_error, scale)])
    caption = f"Means of {METHOD_NAMES[method]} ± standard error"
    return table(caption, ["feature", "before", "after", "difference"], rows) + "".join(tables)


def safe(text: str) -> str:
    """Escape text for HTML, and replace unprintable characters."""
    return escape(printable(text))


def _curve_table(caption: str, curve: Curve) -> str:
    effects = effect_of(curve)
    names = ["output" if label is None else f"class {label}" for label in effects]
    rows = []
    for i, point in enumerate(curve.grid[:MAX_CURVE_ROWS]):
        shown = plain(point) if isinstance(point, float) else str(point)
        rows.append([shown, *(f"{effect[i]:.4g}" for effect in effects.values())])
    return table(caption, ["value", *names], rows)
