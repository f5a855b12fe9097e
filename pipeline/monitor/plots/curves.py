"""Partial dependence: the curve now, earlier ones, and those of single observations."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from pipeline.monitor.plots.effects import Effects, earlier_curves, effect_of
from pipeline.monitor.plots.labels import (
    End,
    label_ends,
    short_names,
    shortened,
    text_width,
    wrapped,
)
from pipeline.monitor.plots.points import Positions, class_looks, draw_curve, number_points
from pipeline.monitor.plots.style import (
    GREY,
    HEADING_PT,
    LOOKS,
    MARGIN_IN,
    MUTED,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    WIDTH_IN,
    Look,
    Picture,
    Piece,
    add_panel,
    heading,
    lines_in,
    new_figure,
    number_values,
    size_in,
    styled,
    title_piece,
    write,
)
from schemas.change import METHOD_NAMES
from schemas.record import Label

MAX_ICE = 50

MAX_PANELS = 20

NAME_SHARE = 0.7
"""Of a panel's width, at most; the importance is left out where there is no room for it."""

LEFT_IN, PANEL_IN, GAP_IN, NARROWEST_IN = 0.68, 1.35, 0.62, 1.55


def curves_figure(
    effects: Sequence[Effects],
    *,
    title: str | None = None,
    width_in: float = WIDTH_IN,
) -> Picture:
    """Return one panel a feature: its iPDP now, earlier ones fading, and the recent ICE curves.

    All panels have the same vertical axis, so that effects can be compared. Dots are the points of
    the grid; categories are not joined, since nothing lies between them. With more than two classes
    each has a curve, and ICE curves are left out.

    Parameters
    ----------
    effects
        The features, at least one; of more than 20 the first.
    title
        The headline; None for a fitting one.
    width_in
        Of the figure, in inches; at least 4.

    References
    ----------
    iPDP (Muschalik et al. 2023), Figures 1 and 3 to 5.
    """
    shown = effects[:MAX_PANELS]
    with styled():
        room = width_in - LEFT_IN - MARGIN_IN
        columns = min(len(shown), max(1, int(room / NARROWEST_IN)))
        if len(shown) > columns:  # no last row with a single panel, if that can be
            columns = min(range(max(2, columns - 1), columns + 1), key=lambda n: -len(shown) % n)
        rows = -(-len(shown) // columns)
        height = PANEL_IN if len(shown) > 1 else 2 * PANEL_IN
        labels = list(dict.fromkeys(c for each in shown for c in each.curves[-1].classes or ()))
        looks = class_looks(labels)
        one = shown[0].feature if len(shown) == 1 else "each feature"
        if title is None:
            title = f"How the model's output depends on {one}"
        headline = wrapped(title, room, TITLE_PT, bold=True)
        note = wrapped(_note(shown, len(effects)), room, SMALL_PT)
        top = MARGIN_IN + lines_in(headline, TITLE_PT) + 0.3
        legend_in = 0.2 if labels else 0.0
        note_in = lines_in(note, SMALL_PT)
        panels_in = rows * (height + GAP_IN) - GAP_IN + 0.4
        figure = new_figure(width_in, top + legend_in + panels_in + note_in + MARGIN_IN)
        write(figure, headline, left=LEFT_IN, top=MARGIN_IN, size=TITLE_PT, weight="bold")
        if labels:
            _name_classes(figure, looks, left=LEFT_IN, top=top - 0.25, room=room)
        top += legend_in
        names_in = 0.95 if len(shown) == 1 and len(shown[0].curves) > 1 and not labels else 0.0
        pitch = (room - names_in + 0.18) / columns
        first: Axes | None = None
        for i, each in enumerate(shown):
            row, column = divmod(i, columns)
            axes = add_panel(
                figure,
                left=LEFT_IN + column * pitch,
                top=top + row * (height + GAP_IN),
                width=pitch - 0.18,
                height=height,
                sharey=first,
            )
            first = first or axes
            _draw_panel(axes, each, looks, is_left=column == 0)
        low, high = _limits(shown)
        figure.axes[0].set_ylim(low, high)
        for axes in figure.axes:
            number_values(axes, 4)
        if names_in:
            _name_times(figure.axes[0], shown[0])
        write(figure, note, left=LEFT_IN, top=top + panels_in, size=SMALL_PT, color=MUTED)
    return figure


def _draw_panel(
    axes: Axes, each: Effects, looks: Mapping[Label | None, Look], *, is_left: bool
) -> None:
    width = size_in(axes)[0]
    name = shortened(each.feature, NAME_SHARE * width, HEADING_PT, bold=True)
    heading(axes, title_piece(name), Piece(each.importance, size=SMALL_PT))
    now, earlier = each.curves[-1], earlier_curves(each.curves)
    recent = [] if now.classes else each.ice[-MAX_ICE:]
    positions = Positions([now.grid, *(c.grid for c in earlier), *(ice.grid for ice in recent)])
    for ice in recent:
        axes.plot(
            positions.of(ice.grid),
            effect_of(ice)[None],
            ls="-" if positions.is_numeric else "",
            lw=0.4,
            marker="" if positions.is_numeric else ".",
            ms=1.5,
            color=GREY,
            alpha=0.7,
            zorder=3,
        )
    for age, curve in enumerate(reversed(earlier)):
        draw_curve(axes, positions, curve, looks, alpha=0.6 * 0.75**age)
    draw_curve(axes, positions, now, looks)
    number_points(axes, positions)
    if is_left:
        axes.set_ylabel("model's output")
        axes.yaxis.set_label_coords(-0.47 / width, 0.5)
    else:
        axes.tick_params(labelleft=False)


def _name_times(axes: Axes, each: Effects) -> None:
    """Write beside each curve how old it is."""
    curves = [*earlier_curves(each.curves), each.curves[-1]]
    positions = Positions([curve.grid for curve in reversed(curves)])
    look, ends = LOOKS[0], []
    for curve in curves:
        [effect] = effect_of(curve).values()
        color = look.text if curve is curves[-1] else MUTED
        at = positions.of(curve.grid)[-1]
        ends.append(End(float(effect[-1]), f"seq {curve.seq:,}", color, at))
    label_ends(axes, ends, size_pt=SMALL_PT, height_in=size_in(axes)[1])


def _limits(shown: Sequence[Effects]) -> tuple[float, float]:
    numbers: list[float] = []
    for each in shown:
        now = each.curves[-1]
        recent = [] if now.classes else each.ice[-MAX_ICE:]
        for curve in (now, *earlier_curves(each.curves), *recent):
            numbers += [v for effect in effect_of(curve).values() for v in effect.tolist()]
    low, high = min(numbers), max(numbers)
    extent = (high - low) or 1.0
    return low - 0.05 * extent, high + 0.05 * extent


def _name_classes(
    figure: Picture, looks: Mapping[Label | None, Look], *, left: float, top: float, room: float
) -> None:
    names = short_names((str(c) for c in looks if c is not None), 1.0, TEXT_PT)
    end = left + room
    for label, look in looks.items():
        if label is None:
            continue
        name = names[str(label)]
        width = text_width(name, TEXT_PT, bold=True) + 0.15
        if left + width > end:
            return
        write(figure, name, left=left, top=top, color=look.text, weight="bold")
        left += width


def _note(shown: Sequence[Effects], total: int) -> str:
    seqs = sorted({curve.seq for each in shown for curve in earlier_curves(each.curves)})
    newest = max(each.curves[-1].seq for each in shown)
    when = "now" if newest < 0 else f"at seq {newest:,}"
    note = f"{METHOD_NAMES['ipdp']} {when}; dots: the points of its grid."
    if seqs:
        note += f" Fading: earlier ones, from seq {seqs[0]:,} on."
    if any(each.ice and not each.curves[-1].classes for each in shown):
        most = max(len(each.ice[-MAX_ICE:]) for each in shown)
        note += f" Grey: the last {most} single observations (ICE)."
    if any(each.importance for each in shown):
        note += " Numbers: importance ± standard error."
    if total > len(shown):
        note += f" The {total - len(shown):,} less important features are left out."
    return note
