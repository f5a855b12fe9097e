"""HTML report of one stream in a single file, without network or scripts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from matplotlib.figure import Figure

from fluxplain.monitor.figures.change_figure import story_figure
from fluxplain.monitor.figures.curve_panels import plain
from fluxplain.monitor.figures.effect_figures import (
    curves_figure,
    effects_of,
    surfaces_figure,
    surfaces_of,
)
from fluxplain.monitor.figures.importance_over_time import importance_figure
from fluxplain.monitor.figures.saving import inline_svg, theme_css
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.pdp_history import drawable_curves, effect_of
from fluxplain.results.selection import SelectedResults
from fluxplain.results.stream_results import TOP, StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import METHOD_NAMES
from fluxplain.schemas.wording import compared, measured, plural, printable, signal_name

PAGE, CSS = (Path(__file__).with_name(name) for name in ("report.html", "report.css"))

MAX_CHANGES = 300
"""Most rows in the table of changes; older changes are left out."""

MAX_TABLES, MAX_CURVE_ROWS = 20, 50


def report_page(results: SelectedResults, *, title: str | None = None) -> str:
    """Return an HTML report of one stream.

    It has a summary in words, the importances over time, the curves, all changes, and figures of
    some of them. Each figure is repeated as a table. The page follows the reader's preference for
    light or dark, and can be printed.
    """
    view, stream = results.view, results.stream
    contexts = [context for context in results.contexts if context.change.stream == stream]
    parts = (
        _summary(view, stream),
        _importances(view),
        _curves(view),
        _surfaces(view),
        _stories(contexts),
        _changes(view, contexts),
    )
    return Template(PAGE.read_text("utf-8")).substitute(
        title=_safe(title or f"What the model of {stream} relies on"),
        style=theme_css() + CSS.read_text("utf-8"),
        sections="".join(parts),
    )


def _summary(view: StreamView, stream: str) -> str:
    first, newest = view.span()
    sentences = [
        f"Explanations of {plural(len(view.features), 'feature')}, observations {first:,} to "
        f"{newest:,} of {stream}."
    ]
    for method in view.methods:
        texts = view.texts(method)
        named = ", ".join(f"{f} ({texts[f]})" for f, _ in view.ranked(method)[:TOP])
        sentences.append(f"By {METHOD_NAMES[method]}, the model now relies most on {named}.")
    loss, accuracy = view.results.performance.newest
    if loss is not None:
        right = "" if accuracy is None else f", and its accuracy is {100 * accuracy:.1f} %"
        n = view.results.performance.trend(most=1)["labelled"]
        over = f"Over the last {n:,} labelled observations"
        sentences.append(f"{over}, its mean loss is {loss:.3g}{right}.")
    incidents = {change.incident for change in view.drifts if change.incident}
    of = f", in {plural(len(incidents), 'incident')}" if incidents else ""
    sentences.append(f"{plural(len(view.drifts), 'change')} reported{of}.")
    return _section("Summary", f"<ul>\n{_items(sentences)}</ul>")


def _importances(view: StreamView) -> str:
    texts = {METHOD_NAMES[method]: view.texts(method) for method in view.methods}
    ranked = [feature for feature, _ in view.ranked(view.methods[0])]
    features = dict.fromkeys([*ranked, *view.features])
    rows = [[f, *(of_method.get(f, "–") for of_method in texts.values())] for f in features]
    figure = _figure(
        importance_figure(view, title=""),
        "importance",
        "Importance over time",
        f"Lines of {', '.join(texts)} for each feature; the newest values are in the table.",
        _table("Importance now ± standard error", ["feature", *texts], rows),
    )
    return _section("Importance over time", figure)


def _curves(view: StreamView) -> str:
    effects = effects_of(view)
    if not effects:
        return ""
    tables = [_curve_table(f"iPDP of {each.feature}", each.now) for each in effects[:MAX_TABLES]]
    figure = _figure(
        curves_figure(effects, title=""),
        "curves",
        "Effect of each feature",
        "One panel per feature, with its current curve and earlier ones; the points of the current "
        "curves are in the tables.",
        *tables,
    )
    return _section("Effect of each feature", figure)


def _surfaces(view: StreamView) -> str:
    surfaces = surfaces_of(view)
    if not surfaces:
        return ""
    description = f"A map for each of {', '.join(surfaces)}."
    maps = surfaces_figure(surfaces, title="")
    return _section("Effect of pairs", _figure(maps, "surfaces", "Effect of pairs", description))


def _stories(contexts: Sequence[ChangeContext]) -> str:
    if not contexts:
        return ""
    note = "<p>The changes whose means before and after differ by most standard errors.</p>"
    parts = "".join(_story(context, f"story-{i}") for i, context in enumerate(contexts, 1))
    return _section("The clearest changes", note + parts)


def _story(context: ChangeContext, place: str) -> str:
    change = context.change
    figure = _figure(
        story_figure(context),
        f"{place}-figure",
        change.detail,
        "The explanation around the change, the loss, the curve before and after, and the moves of "
        "the features' means; the numbers are in the tables.",
        *_story_tables(context),
    )
    of = f" of {change.feature}" if change.feature else ""
    heading = _safe(f"{change.seq:,}: {signal_name(change)}{of}")
    return f'<section id="{place}"><h3>{heading}</h3>{figure}</section>\n'


def _changes(view: StreamView, contexts: Sequence[ChangeContext]) -> str:
    kept = view.changes[-MAX_CHANGES:]
    if not kept:
        return _section("Changes", "<p>No changes were reported.</p>")
    note, total = "", view.results.change_count
    if total > len(kept):
        note = f"<p>The latest {len(kept):,} of {total:,}.</p>"
    notices = [f"{each.seq:,}: {each.detail}" for each in kept if each.kind != "drift"]
    if notices:
        note += f"<ul>{_items(notices)}</ul>"
    places = {context.change.id: f"story-{i}" for i, context in enumerate(contexts, 1)}
    drifts = [change for change in kept if change.kind == "drift"]
    return _section("All changes", note + _changes_table(drifts, places))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n"


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{_safe(text)}</li>\n" for text in texts)


def _figure(figure: Figure, name: str, title: str, description: str, *tables: str) -> str:
    """Return a figure, and below it tables of its numbers, which are closed at first."""
    svg = inline_svg(figure, name, title=title, description=description)
    numbers = f"<details><summary>Numbers as tables</summary>{''.join(tables)}</details>\n"
    return f"<figure>{svg}</figure>\n{numbers if tables else ''}"


def _table(
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

    kinds = [' class="text"' if i < texts else "" for i in range(len(header))]
    names = zip(kinds, header, strict=True)
    head = "".join(f'<th scope="col"{kind}>{_safe(name)}</th>' for kind, name in names)
    body = "".join(_table_row(row, kinds, links or {}) for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{_safe(caption)}">'
        f"<table><caption>{_safe(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _table_row(row: Sequence[str], kinds: Sequence[str], links: Mapping[str, str]) -> str:
    cells = [f'<th scope="row"{kinds[0]}>{_safe(row[0])}</th>']
    for kind, text in zip(kinds[1:], row[1:], strict=True):
        link = f'<a href="#{links[text]}">{_safe(text)}</a>' if text in links else _safe(text)
        cells.append(f"<td{kind}>{link}</td>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _changes_table(changes: Sequence[Change], places: Mapping[str, str]) -> str:
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
    return _table(caption, header, rows, texts=3, links=places)


def _story_tables(context: ChangeContext) -> Iterator[str]:
    """Yield the numbers of one change's figure."""
    change = context.change
    method = "isage" if context.moves("isage") else change.method
    if method is not None and method != "loss":
        rows = []
        for move in context.moves(method):
            scale = max(abs(move.before.mean), abs(move.after.mean))
            means = [measured(m.mean, m.std_error, scale) for m in (move.before, move.after)]
            rows.append([move.feature, *means, measured(move.difference, move.std_error, scale)])
        caption = f"Means of {METHOD_NAMES[method]} ± standard error"
        yield _table(caption, ["feature", "before", "after", "difference"], rows)
    for when, curve in drawable_curves(change):
        if curve.second_grid is None:
            yield _curve_table(f"iPDP {when}, at seq {curve.seq:,}", curve)


def _safe(text: str) -> str:
    """Escape text for HTML, and replace unprintable characters."""
    return escape(printable(text))


def _curve_table(caption: str, curve: Curve) -> str:
    effects = effect_of(curve)
    names = ["output" if label is None else f"class {label}" for label in effects]
    rows = []
    for i, point in enumerate(curve.grid[:MAX_CURVE_ROWS]):
        shown = plain(point) if isinstance(point, float) else str(point)
        rows.append([shown, *(f"{effect[i]:.4g}" for effect in effects.values())])
    return _table(caption, ["value", *names], rows)
