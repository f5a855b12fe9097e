"""The story of one change in one picture."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from pipeline.monitor.plots.before_after import draw_before_after, drawable_curves
from pipeline.monitor.plots.importance import draw_course
from pipeline.monitor.plots.labels import End, wrapped
from pipeline.monitor.plots.levels import (
    AFTER,
    BEFORE,
    draw_bins,
    draw_levels,
    levels_of,
    name_times,
)
from pipeline.monitor.plots.style import (
    LOOKS,
    MARGIN_IN,
    MUTED,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    WIDTH_IN,
    Picture,
    Piece,
    add_panel,
    heading,
    lines_in,
    new_figure,
    number_observations,
    styled,
    title_piece,
    write,
)
from pipeline.monitor.plots.waterfall import Row, draw_moves, names_width, rows_in, rows_of
from pipeline.monitor.surroundings import Story, name_of
from schemas import Change
from schemas.change import METHOD_NAMES
from schemas.explanation import Method

LEFT_IN, RIGHT_IN, COURSE_IN, LOSS_IN, GAP_IN, CURVES_IN = 0.68, 1.5, 1.7, 0.8, 0.42, 1.6


def story_figure(story: Story, *, title: str | None = None, width_in: float = WIDTH_IN) -> Picture:
    """Return what happened at a change.

    From top to bottom: the explanation around it, with the means that the detector compared; the
    model's loss; the curve before and after; and how the features' means moved, for iSAGE as steps
    from the loss reduction before to that after, since its shares add up.

    Parameters
    ----------
    story
        The change and what was published around it.
    title
        The headline; None for what changed.
    width_in
        Of the figure, in inches; at least 5.
    """
    change = story.change
    method, rows = rows_of(story)
    curves = drawable_curves(change)
    with styled():
        room = width_in - LEFT_IN - MARGIN_IN
        headline = wrapped(_title(change) if title is None else title, room, TITLE_PT, bold=True)
        text = wrapped(change.detail, room, TEXT_PT)
        facts = wrapped(" · ".join(_facts(change)), room, SMALL_PT)
        note = wrapped(_note(story, method, rows), room, SMALL_PT)
        lower_in = max(CURVES_IN if curves else 0.0, rows_in(rows))
        has_losses = any(True for _ in story.losses)
        panels = [COURSE_IN] * (change.feature is not None) + [_loss_in(change)] * has_losses
        figure = new_figure(
            width_in,
            2 * MARGIN_IN
            + lines_in(headline, TITLE_PT)
            + lines_in(text, TEXT_PT)
            + lines_in(facts, SMALL_PT)
            + 0.38
            + sum(panels)
            + GAP_IN * max(0, len(panels) - 1)
            + 0.45
            + (lower_in + 0.8 if lower_in else 0.0)
            + lines_in(note, SMALL_PT),
        )
        top = write(figure, headline, left=LEFT_IN, top=MARGIN_IN, size=TITLE_PT, weight="bold")
        top = write(figure, text, left=LEFT_IN, top=top + 0.05)
        top = write(figure, facts, left=LEFT_IN, top=top + 0.03, size=SMALL_PT, color=MUTED)
        top = _draw_courses(figure, story, top + 0.3, room - RIGHT_IN, has_losses=has_losses)
        if lower_in:
            _draw_lower(figure, change, method, rows, top=top + 0.35, room=room)
            top += lower_in + 0.8
        write(figure, note, left=LEFT_IN, top=top, size=SMALL_PT, color=MUTED)
    return figure


def _draw_courses(
    figure: Picture, story: Story, top: float, width: float, *, has_losses: bool
) -> float:
    """Draw what moves over time; return where the next part begins."""
    change = story.change
    if change.feature is not None:
        axes = add_panel(figure, left=LEFT_IN, top=top, width=width, height=COURSE_IN)
        _draw_explanation(axes, story)
        top += COURSE_IN
        if has_losses:
            axes.tick_params(labelbottom=False)
            top += GAP_IN
    if has_losses:
        axes = add_panel(figure, left=LEFT_IN, top=top, width=width, height=_loss_in(change))
        _draw_loss(axes, story)
        top += _loss_in(change)
    for axes in figure.axes:
        number_observations(axes, label="observations (seq)" if axes is figure.axes[-1] else "")
    return top + 0.45


def _loss_in(change: Change) -> float:
    return LOSS_IN if change.feature else COURSE_IN


def _draw_explanation(axes: Axes, story: Story) -> None:
    change = story.change
    unit = "output" if change.method == "ipdp" else "loss"
    points = story.course.points
    draw_course(axes, points, LOOKS[0], z=6)
    numbers = [point.value for point in points]
    ends = [End(points[-1].value, "smoothed", LOOKS[0].text)] if points else []
    pieces = [title_piece(f"{name_of(change)} of {change.feature}")]
    if change.signal == "increment":
        numbers += draw_bins(axes, story.increments)
        pieces.append(Piece(f"dots: means of {story.increments.width:,} observations"))
    heading(axes, *pieces)
    axes.set_ylabel(f"importance [{unit}]")
    levels = levels_of(
        story, (change.before, change.before_std_error), (change.after, change.after_std_error)
    )
    draw_levels(axes, story, levels, numbers, ends)
    name_times(axes, story)


def _draw_loss(axes: Axes, story: Story) -> None:
    change = story.change
    heading(axes, title_piece("Loss of the model"))
    axes.set_ylabel("loss")
    numbers = draw_bins(axes, story.losses)
    of_loss = change.feature is None
    before = (change.before, change.before_std_error) if of_loss else (change.loss_before, None)
    after = (change.after, change.after_std_error) if of_loss else (change.loss_after, None)
    draw_levels(axes, story, levels_of(story, before, after), numbers, [])
    if of_loss:
        name_times(axes, story)


def _draw_lower(
    figure: Picture,
    change: Change,
    method: Method | None,
    rows: Sequence[Row],
    *,
    top: float,
    room: float,
) -> None:
    """Draw the curves, and the moves beside them."""
    has_curves = bool(drawable_curves(change))
    names_in = names_width(rows)
    moves_in = (0.5 if has_curves else 1.0) * room - names_in
    if has_curves:
        width = 0.5 * room - 0.25 if rows else 0.6 * room
        draw_before_after(
            figure, change, (BEFORE, AFTER), left=LEFT_IN, top=top, width=width, height=CURVES_IN
        )
    if rows and method is not None:
        left = LEFT_IN + room - moves_in
        axes = add_panel(figure, left=left, top=top, width=moves_in, height=rows_in(rows))
        draw_moves(axes, rows, method, feature=change.feature)


def _title(change: Change) -> str:
    of = "the model" if change.feature is None else change.feature
    return f"What changed: {name_of(change)} of {of}, seen at seq {change.seq:,}"


def _facts(change: Change) -> list[str]:
    facts = [f"change {change.id}"]
    if change.incident is not None:
        facts.append(f"incident {change.incident}")
    if change.replay_seq is not None:
        facts.append(f"to replay: {change.replay_seq:,} to {change.seq:,}")
    return facts


def _note(story: Story, method: Method | None, rows: Sequence[Row]) -> str:
    change, window = story.change, story.window
    note = f"Shaded: the observations that “after” is about, {window.after:,} to {window.seen:,}."
    if change.before_std_error is not None:
        note += " Bands and whiskers: ± standard error."
    if method is not None and rows:
        n = max(0, window.after - window.before)
        note += (
            f" {METHOD_NAMES[method]}: means of the {n:,} observations before them and of these."
        )
    return note
