"""HTML report of one stream in a single file, without network or scripts."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from matplotlib.figure import Figure

from fluxplain.monitor.figures.change_figure import story_figure
from fluxplain.monitor.figures.effect_curves import curves_figure, effects_of
from fluxplain.monitor.figures.effect_maps import surfaces_figure
from fluxplain.monitor.figures.importance_over_time import importance_figure
from fluxplain.monitor.figures.report_tables import (
    changes_table,
    curve_tables,
    importance_table,
    safe,
    story_tables,
)
from fluxplain.monitor.figures.saving import inline_svg, theme_css
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selected import SelectedResults
from fluxplain.results.stream_results import StreamView
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES
from fluxplain.schemas.wording import measured, plural, signal_name

PAGE, CSS = (Path(__file__).with_name(name) for name in ("report.html", "report.css"))

MAX_CHANGES = 300
"""Most rows in the table of changes; older changes are left out."""

MAX_TABLES = 20

TOP = 3
"""Number of most important features that the summary names."""


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
        _curves(results),
        _surfaces(results),
        _stories(contexts),
        _changes(view, contexts),
    )
    return Template(PAGE.read_text("utf-8")).substitute(
        title=safe(title or f"What the model of {stream} relies on"),
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
        ranked = view.ranked(method)[:TOP]
        scale = max(abs(e.value) for _, e in ranked)
        named = ", ".join(f"{f} ({measured(e.value, e.std_error, scale)})" for f, e in ranked)
        sentences.append(f"By {METHOD_NAMES[method]}, the model now relies most on {named}.")
    trend = view.results.performance.trend(most=1)
    if trend["loss"] and trend["loss"][-1] is not None:
        sentence = f"Over the last {trend['labelled']:,} labelled observations, its mean loss is "
        sentence += f"{trend['loss'][-1]:.3g}"
        if trend["accuracy"][-1] is not None:
            sentence += f", and its accuracy is {100 * trend['accuracy'][-1]:.1f} %"
        sentences.append(f"{sentence}.")
    drifts = list(filter(_is_drift, view.changes))
    incidents = {change.incident for change in drifts if change.incident}
    counted = f"{plural(len(drifts), 'change')} reported"
    if incidents:
        counted += f", in {plural(len(incidents), 'incident')}"
    sentences.append(f"{counted}.")
    items = "".join(f"<li>{safe(sentence)}</li>\n" for sentence in sentences)
    return f"<section><h2>Summary</h2><ul>\n{items}</ul></section>\n"


def _importances(view: StreamView) -> str:
    methods = ", ".join(METHOD_NAMES[method] for method in view.methods)
    return _section(
        "Importance over time",
        importance_figure(view, title=""),
        "importance",
        f"Lines of {methods} for each feature; the newest values are in the table.",
        ("Table of the newest values", importance_table(view)),
    )


def _curves(results: SelectedResults) -> str:
    effects = effects_of(results)
    if not effects:
        return ""
    return _section(
        "Effect of each feature",
        curves_figure(effects, title=""),
        "curves",
        "One panel per feature, with its current curve and earlier ones; the points of the current "
        "curves are in the tables.",
        ("Tables of the curves", curve_tables(effects[:MAX_TABLES])),
    )


def _surfaces(results: SelectedResults) -> str:
    surfaces = {pair: c[-1] for pair, c in results.curves.items() if c[-1].second_grid}
    if not surfaces:
        return ""
    figure = surfaces_figure(surfaces, title="")
    description = f"A map for each of {', '.join(surfaces)}."
    return _section("Effect of pairs", figure, "surfaces", description, ("", ""))


def _section(
    title: str, figure: Figure, name: str, description: str, tables: tuple[str, str]
) -> str:
    svg = inline_svg(figure, name, title=title, description=description)
    return f"<section><h2>{title}</h2><figure>{svg}</figure>\n{_details(*tables)}</section>\n"


def _stories(contexts: Sequence[ChangeContext]) -> str:
    if not contexts:
        return ""
    note = "<p>The changes whose means before and after differ by most standard errors.</p>"
    parts = "".join(_story(context, f"story-{i}") for i, context in enumerate(contexts, 1))
    return f"<section><h2>The clearest changes</h2>{note}{parts}</section>\n"


def _story(context: ChangeContext, place: str) -> str:
    change = context.change
    svg = inline_svg(
        story_figure(context),
        f"{place}-figure",
        title=change.detail,
        description="The explanation around the change, the loss, the curve before and after, and "
        "the moves of the features' means; the numbers are in the tables.",
    )
    of = f" of {change.feature}" if change.feature else ""
    heading = safe(f"{change.seq:,}: {signal_name(change)}{of}")
    tables = _details("Tables of the numbers", story_tables(context))
    return f'<section id="{place}"><h3>{heading}</h3><figure>{svg}</figure>\n{tables}</section>\n'


def _changes(view: StreamView, contexts: Sequence[ChangeContext]) -> str:
    kept = view.changes[-MAX_CHANGES:]
    if not kept:
        return "<section><h2>Changes</h2><p>No changes were reported.</p></section>\n"
    note, total = "", view.results.change_count
    if total > len(kept):
        note = f"<p>The latest {len(kept):,} of {total:,}.</p>"
    notices = [each for each in kept if not _is_drift(each)]
    if notices:
        items = "".join(f"<li>{each.seq:,}: {safe(each.detail)}</li>" for each in notices)
        note += f"<ul>{items}</ul>"
    places = {context.change.id: f"story-{i}" for i, context in enumerate(contexts, 1)}
    listed = changes_table(list(filter(_is_drift, kept)), places)
    return f"<section><h2>All changes</h2>{note}{listed}</section>\n"


def _is_drift(change: Change) -> bool:
    return change.kind == "drift"


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>\n" if content else ""
