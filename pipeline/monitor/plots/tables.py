"""What the figures show, as tables: for screen readers, and for who wants the numbers."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pipeline.monitor.history import StreamHistory
from pipeline.monitor.plots.effects import Effects, effect_of
from pipeline.monitor.plots.points import plain
from pipeline.monitor.surroundings import name_of
from pipeline.monitor.text import compared, measured, printable
from schemas import Change
from schemas.change import METHOD_NAMES, Curve

MAX_CURVE_ROWS = 50


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    links: Mapping[str, str] | None = None,
) -> str:
    """Return a table; its first columns are text, the others numbers, and the first is a heading.

    Parameters
    ----------
    caption
        What it shows.
    header
        Names of the columns.
    rows
        Cells: plain text.
    texts
        How many columns are text.
    links
        Text of a cell → where in the page it leads to.
    """

    def shown(cell: str) -> str:
        place = (links or {}).get(cell)
        return _text(cell) if place is None else f'<a href="#{place}">{_text(cell)}</a>'

    head = "".join(
        f'<th scope="col"{_kind(i < texts)}>{_text(name)}</th>' for i, name in enumerate(header)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row"{_kind(True)}>{_text(cell)}</th>'
            if i == 0
            else f"<td{_kind(i < texts)}>{shown(cell)}</td>"
            for i, cell in enumerate(row)
        )
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{_text(caption)}">'
        f"<table><caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>\n"
    )


def importance_table(state: StreamHistory) -> str:
    """Return the newest importance of each feature by each method."""
    scales = {
        m: max((abs(e.value) for (_, n), e in state.latest.items() if n == m), default=0.0)
        for m in state.methods
    }
    first = state.methods[0]

    def rank(feature: str) -> float:
        found = state.latest.get((feature, first))
        return -found.value if found else 0.0

    rows = []
    for feature in sorted(state.features, key=rank):
        found = [state.latest.get((feature, m)) for m in state.methods]
        cells = [
            measured(e.value, e.std_error, scales[e.method]) if e is not None else "–"
            for e in found
        ]
        rows.append([feature, *cells])
    header = ["feature", *(METHOD_NAMES[m] for m in state.methods)]
    return table("Importance now ± standard error", header, rows)


def curve_tables(effects: Iterable[Effects]) -> str:
    """Return the curve of each feature, point by point."""
    tables = []
    for each in effects:
        rows = curve_rows(each.curves[-1])
        tables.append(table(f"iPDP of {each.feature}", rows[0], rows[1:]))
    return "".join(tables)


def curve_rows(curve: Curve) -> list[list[str]]:
    """Return a header and a row for each point of a curve."""
    effects = effect_of(curve)
    names = ["output" if label is None else f"class {label}" for label in effects]
    rows = [["value", *names]]
    for i, point in enumerate(curve.grid[:MAX_CURVE_ROWS]):
        shown = plain(point) if isinstance(point, float) else str(point)
        rows.append([shown, *(f"{effect[i]:.4g}" for effect in effects.values())])
    return rows


def changes_table(changes: Sequence[Change], stories: Mapping[str, str]) -> str:
    """Return one row a change.

    Parameters
    ----------
    changes
        What to list.
    stories
        Id of a change → where in the page its story is.
    """
    rows = []
    for change in changes:
        ranks = (change.rank_before, change.rank_after)
        rows.append(
            [
                f"{change.seq:,}",
                change.feature or "–",
                name_of(change),
                *compared(
                    change.before, change.after, change.before_std_error, change.after_std_error
                ),
                "–" if None in ranks else f"{ranks[0]} → {ranks[1]}",
                "–" if change.incident is None else change.incident.rpartition("@")[2],
                change.id,
            ]
        )
    header = ["seq", "feature", "method", "before", "after", "rank", "incident", "id"]
    caption = "Changes, in their order; an incident is named by its first change"
    return table(caption, header, rows, texts=3, links=stories)


def _kind(is_text: bool) -> str:
    return ' class="text"' if is_text else ""


def _text(text: str) -> str:
    return escape(printable(text))
