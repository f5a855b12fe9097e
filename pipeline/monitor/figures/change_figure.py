"""Figure of one change: its context over time, its curves, and the moves of all features."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.contributions import Row, draw_moves, names_width, rows_in, rows_of
from fluxplain.monitor.figures.curve_panels import draw_before_after
from fluxplain.monitor.figures.importance_over_time import draw_trend
from fluxplain.monitor.figures.text_fit import End, label_ends, text_width, wrapped
from fluxplain.results.change_context import Bins, ChangeContext, Window
from fluxplain.results.pdp_history import drawable_curves
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHOD_NAMES, Method, unit_of
from fluxplain.schemas.wording import compared, signal_name, subject

RIGHT_IN, TREND_IN, LOSS_IN, GAP_IN, CURVES_IN = 1.5, 1.7, 0.8, 0.42, 1.6
"""In inches: width for labels; heights of the explanation, the loss, the gap, and the curves."""

BEFORE, AFTER = style.Look(style.GREY, style.MUTED), style.LOOKS[1]


class Level(NamedTuple):
    """A mean, if known, and its standard error."""

    mean: float | None
    std_error: float | None = None


def story_figure(
    context: ChangeContext, *, title: str | None = None, width_in: float = style.WIDTH_IN
) -> style.Picture:
    """Return the figure of a change.

    From top to bottom: the explanation (or share of wrong predictions) around the change, with the
    means that the detector compared; the model's loss; the curve before and after; and the moves of
    the features' means. For iSAGE the moves are steps from the loss reduction before to the one
    after, since its shares add up.
    """
    change = context.change
    method, rows = rows_of(context)
    room = width_in - style.AXIS_IN - style.MARGIN_IN
    text = wrapped(change.detail, room, style.TEXT_PT)
    facts = wrapped(" · ".join(_facts(change)), room, style.SMALL_PT)
    words_in = style.lines_in(text, style.TEXT_PT) + style.lines_in(facts, style.SMALL_PT) + 0.03
    heights = [height for _, height in _panels(context)]
    trends_in = sum(heights) + GAP_IN * max(0, len(heights) - 1)
    lower_in = max(CURVES_IN if drawable_curves(change) else 0.0, rows_in(rows))
    with style.styled():
        figure, top = style.titled_figure(
            width_in,
            title=_title(change) if title is None else title,
            note=_note(context, method, rows),
            body_in=words_in + 0.5 + trends_in + (lower_in + 0.8 if lower_in else 0.0),
        )
        top = style.write(figure, text, left=style.AXIS_IN, top=top - 0.25)
        small: Any = {"size": style.SMALL_PT, "color": style.MUTED}
        top = style.write(figure, facts, left=style.AXIS_IN, top=top + 0.03, **small) + 0.3
        if heights:
            _draw_trends(figure, context, style.Box(style.AXIS_IN, top, room - RIGHT_IN, trends_in))
        if lower_in:
            box = style.Box(style.AXIS_IN, top + trends_in + 0.8, room, lower_in)
            _draw_lower(figure, change, method, rows, box)
    return figure


def _panels(
    context: ChangeContext,
) -> Sequence[tuple[Callable[[Axes, ChangeContext], None], float]]:
    """Return how each panel is drawn and its height: the watched signal, and the loss if known."""
    panels = [] if context.change.feature is None else [(_draw_explanation, TREND_IN)]
    if context.change.signal == "error":
        panels = [(_draw_errors, TREND_IN)]
    if any(True for _ in context.losses):
        panels.append((_draw_loss, LOSS_IN if panels else TREND_IN))
    return panels


def _draw_trends(figure: style.Picture, context: ChangeContext, box: style.Box) -> None:
    draws, heights = zip(*_panels(context), strict=True)
    panels = style.add_panels(figure, box, len(draws), gap=GAP_IN, ratios=heights, sharex=True)
    for axes, draw in zip(panels, draws, strict=True):
        draw(axes, context)
    style.number_observations(panels[-1])


def _draw_explanation(axes: Axes, context: ChangeContext) -> None:
    change, points = context.change, context.trend.points
    draw_trend(axes, points, style.LOOKS[0], z=6)
    numbers = points.value.tolist()
    ends = [End(numbers[-1], "smoothed", style.LOOKS[0].text)] if numbers else []
    pieces = []
    if change.signal == "increment":
        numbers += _draw_bins(axes, context.increments)
        pieces.append(style.Piece(f"dots: means of {context.increments.width:,} observations"))
    style.heading(axes, f"{signal_name(change)} of {change.feature}", *pieces)
    _draw_levels(axes, context, _watched(change), numbers, ends, named=True)
    style.label_values(axes, f"importance [{unit_of(change.method)}]")


def _draw_errors(axes: Axes, context: ChangeContext) -> None:
    style.heading(axes, subject(context.change).capitalize())
    numbers = _draw_bins(axes, context.increments)
    _draw_levels(axes, context, _watched(context.change), numbers, [], named=True)
    style.label_values(axes, "share")


def _draw_loss(axes: Axes, context: ChangeContext) -> None:
    change = context.change
    style.heading(axes, "Loss of the model")
    numbers = _draw_bins(axes, context.losses)
    of_loss = Level(change.loss_before), Level(change.loss_after)
    is_watched = change.feature is None and change.signal != "error"
    levels = _watched(change) if is_watched else of_loss
    _draw_levels(axes, context, levels, numbers, [], named=is_watched)
    style.label_values(axes, "loss")


def _watched(change: Change) -> tuple[Level, Level]:
    before = Level(change.before, change.before_std_error)
    return before, Level(change.after, change.after_std_error)


def _draw_bins(axes: Axes, bins: Bins) -> list[float]:
    """Draw the mean of each bin ± its standard error; return the means."""
    found = [(x, part) for x, part in bins if part.n > 1]
    means, errors = [p.mean for _, p in found], [p.std_error or 0.0 for _, p in found]
    look: Any = {"fmt": ".", "ms": 3.5, "color": style.GREY, "elinewidth": 0.5, "zorder": 3}
    axes.errorbar([x for x, _ in found], means, yerr=errors, **look)
    return means


def _draw_levels(
    axes: Axes,
    context: ChangeContext,
    levels: tuple[Level, Level],
    numbers: Sequence[float],
    ends: list[End],
    *,
    named: bool,
) -> None:
    """Draw the means before and after, and set the limits of the panel, with room for names."""
    window, (before, after) = context.window, levels
    texts = compared(before.mean, after.mean, before.std_error, after.std_error)
    for name, level, span, look, text in (
        ("before", before, (max(window.begin, window.since), window.after), BEFORE, texts[0]),
        ("after", after, (window.after, window.seen), AFTER, texts[1]),
    ):
        if level.mean is None:
            continue
        axes.plot(span, [level.mean] * 2, color=look.text, lw=2.2, zorder=8)
        if level.std_error is not None:
            low, high = level.mean - level.std_error, level.mean + level.std_error
            axes.fill_between(span, low, high, color=look.color, alpha=0.35, lw=0, zorder=2)
        ends.append(End(level.mean, f"{name} {text}", look.text))
    known = [level.mean for level in (before, after) if level.mean is not None]
    style.set_values(axes, [0.0, *numbers, *known], below=0.06, above=0.22 if named else 0.06)
    axes.set_xlim(window.begin, window.end)
    style.number_values(axes, 4)
    axes.axvspan(window.after, window.seen, color=AFTER.color, alpha=0.07, lw=0)
    axes.axvline(window.seen, color=style.INK, lw=0.8, ls=(0, (4, 3)), zorder=1.5)
    label_ends(axes, ends, size_pt=style.SMALL_PT, leads=False)
    if named:
        _name_times(axes, window)


def _name_times(axes: Axes, window: Window) -> None:
    """Label the change and its detection above the lines."""
    inch = (window.end - window.begin) / style.size_in(axes)[0]
    for seq, text, side, shift, room in (
        (window.after, "before", "right", -3, window.after - window.begin),
        (window.seen, "detected", "left", 3, window.end - window.seen),
    ):
        if text_width(text, style.SMALL_PT) + 0.08 <= room / inch:
            style.name_line(axes, seq, text, (shift, -2), size=style.SMALL_PT, side=side)


def _draw_lower(
    figure: style.Picture,
    change: Change,
    method: Method | None,
    rows: Sequence[Row],
    box: style.Box,
) -> None:
    """Draw the curves, and the moves to their right."""
    has_curves = bool(drawable_curves(change))
    moves_in = (0.5 if has_curves else 1.0) * box.width - names_width(rows)
    if has_curves:
        width = 0.5 * box.width - 0.25 if rows else 0.6 * box.width
        curves = box._replace(width=width, height=CURVES_IN)
        draw_before_after(figure, change, (BEFORE, AFTER), curves)
    if rows and method is not None:
        left = box.left + box.width - moves_in
        moves = style.Box(left, box.top, moves_in, rows_in(rows))
        [axes] = style.add_panels(figure, moves)
        draw_moves(axes, rows, method, feature=change.feature)


def _title(change: Change) -> str:
    of = "the model" if change.feature is None else change.feature
    return f"What changed: {signal_name(change)} of {of}, detected at seq {change.seq:,}"


def _facts(change: Change) -> list[str]:
    facts = [f"change {change.id}"]
    if change.incident is not None:
        facts.append(f"incident {change.incident}")
    if change.replay_seq is not None:
        facts.append(f"to replay: {change.replay_seq:,} to {change.seq:,}")
    return facts


def _note(context: ChangeContext, method: Method | None, rows: Sequence[Row]) -> str:
    window = context.window
    note = f"Shaded: observations of the mean “after”, {window.after:,} to {window.seen:,}."
    if context.change.before_std_error is not None:
        note += " Bands and whiskers: ± standard error."
    if method is not None and rows:
        n = max(0, window.after - window.before)
        note += f" {METHOD_NAMES[method]}: means of these and of the {n:,} observations before."
    return note
