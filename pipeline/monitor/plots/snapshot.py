"""What each feature means to a model at one time."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes

from pipeline.monitor.plots.labels import short_names, text_width, wrapped
from pipeline.monitor.plots.style import (
    FAINT,
    GREY,
    LOOKS,
    MARGIN_IN,
    MUTED,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    WIDTH_IN,
    Picture,
    add_panel,
    lines_in,
    new_figure,
    size_in,
    styled,
    write,
)

MAX_ROWS = 25

ROW_IN, NAME_IN = 0.22, 1.6


def snapshot_figure(
    values: Mapping[str, float],
    std_errors: Mapping[str, float],
    *,
    title: str,
    unit: str,
    width_in: float = WIDTH_IN,
) -> Picture:
    """Return one row a feature, the most important first: its importance ± its standard error.

    Features within two standard errors of 0 are grey.

    Parameters
    ----------
    values, std_errors
        Feature → importance and its standard error; of more than 25 features the first are shown.
    title
        The headline.
    unit
        Of the values: ``"loss"`` or ``"output"``.
    width_in
        Of the figure, in inches; at least 4.
    """
    ranked = sorted(values, key=lambda feature: -abs(values[feature]))[:MAX_ROWS]
    names = short_names(ranked, NAME_IN, TEXT_PT)
    with styled():
        left = MARGIN_IN + 0.08 + max((text_width(n, TEXT_PT) for n in names.values()), default=0.0)
        room = width_in - left - MARGIN_IN
        headline = wrapped(title, width_in - 2 * MARGIN_IN, TITLE_PT, bold=True)
        note = wrapped(_note(len(ranked), len(values)), room, SMALL_PT)
        top = MARGIN_IN + lines_in(headline, TITLE_PT) + 0.1
        height = ROW_IN * max(1, len(ranked))
        note_in = lines_in(note, SMALL_PT)
        figure = new_figure(width_in, top + height + 0.5 + note_in + MARGIN_IN)
        write(figure, headline, left=MARGIN_IN, top=MARGIN_IN, size=TITLE_PT, weight="bold")
        axes = add_panel(figure, left=left, top=top, width=room, height=height)
        for place, feature in enumerate(ranked):
            _draw_row(axes, place, names[feature], values[feature], std_errors.get(feature, 0.0))
        axes.axvline(0, color=FAINT, lw=0.8, zorder=1)
        axes.set_ylim(max(1, len(ranked)) - 0.4, -0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"importance [{unit}]")
        write(figure, note, left=left, top=top + height + 0.5, size=SMALL_PT, color=MUTED)
    return figure


def _draw_row(axes: Axes, place: int, name: str, value: float, std_error: float) -> None:
    error = std_error if math.isfinite(std_error) else 0.0
    color = LOOKS[0].color if abs(value) > 2 * error else GREY
    axes.plot([0, value], [place, place], color=color, lw=0.8, zorder=2)
    axes.errorbar(
        value, place, xerr=error, fmt="o", ms=4.5, color=color, elinewidth=1.3, capsize=2, zorder=3
    )
    axes.text(
        -0.08 / size_in(axes)[0],
        place,
        name,
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="center",
        fontsize=TEXT_PT,
    )


def _note(shown: int, total: int) -> str:
    note = "Whiskers: ± standard error. Grey: within two of them of 0."
    if total > shown:
        note += f" The {total - shown:,} least important features are left out."
    return note
