"""Figure of the current importances of an explainer in a notebook."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.text_fit import short_names, text_width

MAX_ROWS = 25

ROW_IN, NAME_IN = 0.22, 1.6


def snapshot_figure(
    values: Mapping[str, float],
    std_errors: Mapping[str, float],
    *,
    title: str,
    unit: str,
    width_in: float = style.WIDTH_IN,
) -> style.Picture:
    """Return a figure with one row per feature, the most important first: importance ± error.

    Features within two standard errors of 0 are grey.
    """
    ranked = sorted(values, key=lambda feature: -abs(values[feature]))[:MAX_ROWS]
    names = short_names(ranked, NAME_IN, style.TEXT_PT)
    rows = max(1, len(ranked))
    with style.styled():
        left = (
            style.MARGIN_IN
            + 0.08
            + max((text_width(n, style.TEXT_PT) for n in names.values()), default=0.0)
        )
        figure, top = style.titled_figure(
            width_in,
            title=title,
            note=_note(len(ranked), len(values)),
            body_in=ROW_IN * rows + 0.5,
            left=left,
            title_left=style.MARGIN_IN,
            gap=0.1,
        )
        room = width_in - left - style.MARGIN_IN
        axes = style.add_panel(figure, style.Box(left, top, room, ROW_IN * rows))
        for place, feature in enumerate(ranked):
            _draw_row(axes, place, names[feature], values[feature], std_errors.get(feature, 0.0))
        axes.axvline(0, color=style.FAINT, lw=0.8, zorder=1)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"importance [{unit}]")
    return figure


def _draw_row(axes: Axes, place: int, name: str, value: float, std_error: float) -> None:
    error = std_error if math.isfinite(std_error) else 0.0
    color = style.LOOKS[0].color if abs(value) > 2 * error else style.GREY
    axes.plot([0, value], [place, place], color=color, lw=0.8, zorder=2)
    axes.errorbar(
        value, place, xerr=error, fmt="o", ms=4.5, color=color, elinewidth=1.3, capsize=2, zorder=3
    )
    style.name_row(axes, place, name, gap=0.08)


def _note(shown: int, total: int) -> str:
    note = "Whiskers: ± standard error. Grey: within two standard errors of 0."
    if total > shown:
        note += f" The {total - shown:,} least important features are left out."
    return note
