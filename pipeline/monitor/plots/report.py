"""All figures of a stream in one page that needs nothing else: no network, no script."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from pipeline.monitor.history import StreamHistory
from pipeline.monitor.past import Past
from pipeline.monitor.plots.before_after import drawable_curves
from pipeline.monitor.plots.curves import curves_figure
from pipeline.monitor.plots.effects import effects_of
from pipeline.monitor.plots.importance import importance_figure
from pipeline.monitor.plots.inline import inline_svg, theme_css
from pipeline.monitor.plots.stories import story_figure
from pipeline.monitor.plots.surfaces import surfaces_figure
from pipeline.monitor.plots.tables import (
    changes_table,
    curve_rows,
    curve_tables,
    importance_table,
    table,
)
from pipeline.monitor.surroundings import Story, name_of
from pipeline.monitor.text import measured, printable
from schemas import Change
from schemas.change import METHOD_NAMES

CSS = Path(__file__).with_name("report.css")

MAX_CHANGES = 300
"""Rows of the table of changes, the newest."""

MAX_TABLES = 20

TOP = 3
"""Features that the summary names."""


def report_page(past: Past, *, title: str | None = None) -> str:
    """Return a report on one stream as an HTML page.

    It has a summary in words, the importances over time, the curves, all changes, and the stories
    of some; each figure also as a table. It follows the reader's choice of light or dark, and
    prints.

    Parameters
    ----------
    past
        What was published, with the stories to tell.
    title
        The headline; None for a fitting one.

    Raises
    ------
    NothingError
        If there is no explanation.
    """
    state, stream = past.state, past.stream
    stories = [story for story in past.stories if story.change.stream == stream]
    title = title or f"What the model of {stream} relies on"
    parts = [
        _summary(past, state),
        _importances(state),
        _curves(past),
        _surfaces(past),
        _stories(stories),
        _changes(state, stories),
        HOW_TO_READ,
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>\n{theme_css()}{CSS.read_text()}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>{_text(title)}</h1>\n"
        + "".join(parts)
        + "</main>\n</body>\n</html>\n"
    )


HOW_TO_READ = """<section><h2>How to read this</h2>
<p><b>iPFI</b>: how much larger the loss would be if the feature's value were replaced by another
one. <b>iSAGE</b>: the feature's share in how much smaller the model's loss is than that of its mean
prediction. <b>iPDP</b>: how the model's output moves with the feature. All are smoothed over the
past observations; ± is the standard error. <b>seq</b> is the offset of an observation in its
stream. A <b>change</b> is reported when the mean of what single observations add, or with iPDP the
smoothed value, has moved by more than chance explains.</p></section>
"""


def _summary(past: Past, state: StreamHistory) -> str:
    first = min(series.points[0].seq for series in state.series.values())
    sentences = [
        f"Explanations of {len(state.features):,} features, observations {first:,} to "
        f"{state.newest_seq:,} of {past.stream}."
    ]
    for method in state.methods:
        found = [e for (_, m), e in state.latest.items() if m == method]
        ranked = sorted(found, key=lambda e: -e.value)[:TOP]
        scale = max(abs(e.value) for e in ranked)
        named = ", ".join(f"{e.feature} ({measured(e.value, e.std_error, scale)})" for e in ranked)
        sentences.append(f"By {METHOD_NAMES[method]} it now relies most on {named}.")
    if state.mean_loss is not None:
        sentence = f"Over the last {len(state.losses):,} labelled observations its mean loss is "
        sentence += f"{state.mean_loss:.3g}"
        if state.accuracy is not None:
            sentence += f", and {100 * state.accuracy:.1f} % of its predictions are right"
        sentences.append(f"{sentence}.")
    drifts = list(filter(_is_drift, state.changes))
    incidents = {change.incident for change in drifts if change.incident}
    counted = f"{len(drifts):,} change{'' if len(drifts) == 1 else 's'} reported"
    if incidents:
        counted += f", in {len(incidents):,} incident{'' if len(incidents) == 1 else 's'}"
    sentences.append(f"{counted}.")
    items = "".join(f"<li>{_text(sentence)}</li>\n" for sentence in sentences)
    return f"<section><h2>Summary</h2><ul>\n{items}</ul></section>\n"


def _importances(state: StreamHistory) -> str:
    methods = ", ".join(METHOD_NAMES[method] for method in state.methods)
    svg = inline_svg(
        importance_figure(state, title=""),
        "importance",
        title="Importance over time",
        description=f"Lines of {methods} of each feature; the newest values are in the table.",
    )
    return (
        f"<section><h2>Importance over time</h2>{_figure(svg)}"
        f"{_details('The newest values as a table', importance_table(state))}</section>\n"
    )


def _curves(past: Past) -> str:
    effects = effects_of(past)
    if not effects:
        return ""
    svg = inline_svg(
        curves_figure(effects, title=""),
        "curves",
        title="How the model's output depends on each feature",
        description="A panel a feature, with its curve now and earlier ones; the points of the "
        "newest curves are in the tables.",
    )
    return (
        f"<section><h2>Effect of each feature</h2>{_figure(svg)}"
        f"{_details('The curves as tables', curve_tables(effects[:MAX_TABLES]))}</section>\n"
    )


def _surfaces(past: Past) -> str:
    surfaces = {pair: c[-1] for pair, c in past.curves.items() if c[-1].second_grid}
    if not surfaces:
        return ""
    svg = inline_svg(
        surfaces_figure(surfaces, title=""),
        "surfaces",
        title="How the model's output depends on two features together",
        description=f"A map for each of {', '.join(surfaces)}.",
    )
    return f"<section><h2>Effect of pairs</h2>{_figure(svg)}</section>\n"


def _stories(stories: Sequence[Story]) -> str:
    if not stories:
        return ""
    note = "<p>Those whose means before and after are most standard errors apart.</p>"
    told = "".join(_story(story, f"story-{i}") for i, story in enumerate(stories, 1))
    return f"<section><h2>The clearest changes</h2>{note}{told}</section>\n"


def _changes(state: StreamHistory, stories: Sequence[Story]) -> str:
    kept = state.changes[-MAX_CHANGES:]
    if not kept:
        return "<section><h2>Changes</h2><p>None was reported.</p></section>\n"
    note = ""
    if state.change_count > len(kept):
        note = f"<p>The newest {len(kept):,} of {state.change_count:,}.</p>"
    notices = [
        f"<li>{each.seq:,}: {_text(each.detail)}</li>" for each in kept if not _is_drift(each)
    ]
    if notices:
        note += f"<ul>{''.join(notices)}</ul>"
    places = {story.change.id: f"story-{i}" for i, story in enumerate(stories, 1)}
    listed = changes_table([each for each in kept if _is_drift(each)], places)
    return f"<section><h2>All changes</h2>{note}{listed}</section>\n"


def _is_drift(change: Change) -> bool:
    return change.kind == "drift"


def _story(story: Story, place: str) -> str:
    change = story.change
    svg = inline_svg(
        story_figure(story),
        f"{place}-figure",
        title=change.detail,
        description="What was explained around the change, the loss, the curve before and after, "
        "and how the features' means moved; the numbers are in the tables.",
    )
    tables = _moves_table(story) + _curves_table(change)
    return (
        f'<section id="{place}"><h3>{_text(_headline(change))}</h3>{_figure(svg)}'
        f"{_details('The numbers as tables', tables)}</section>\n"
    )


def _headline(change: Change) -> str:
    of = f" of {change.feature}" if change.feature else ""
    return f"{change.seq:,}: {name_of(change)}{of}"


def _moves_table(story: Story) -> str:
    method = "isage" if story.moves("isage") else story.change.method
    if method is None or method == "loss":
        return ""
    rows = []
    for move in story.moves(method):
        scale = max(abs(move.before.mean), abs(move.after.mean))
        means = [measured(m.mean, m.std_error, scale) for m in (move.before, move.after)]
        rows.append([move.feature, *means, measured(move.difference, move.std_error, scale)])
    header = ["feature", "before", "after", "difference"]
    return table(f"Means of {METHOD_NAMES[method]} ± standard error", header, rows)


def _curves_table(change: Change) -> str:
    tables = []
    for when, curve in drawable_curves(change):
        if curve.second_grid is None:
            rows = curve_rows(curve)
            tables.append(table(f"iPDP {when}, at seq {curve.seq:,}", rows[0], rows[1:]))
    return "".join(tables)


def _figure(svg: str) -> str:
    return f"<figure>{svg}</figure>\n"


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>\n" if content else ""


def _text(text: str) -> str:
    return escape(printable(text))
