"""The means before and after a change, in a panel over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from pipeline.monitor.plots.labels import End, label_ends, text_width
from pipeline.monitor.plots.style import (
    GREY,
    INK,
    LOOKS,
    MUTED,
    PAPER,
    SMALL_PT,
    Look,
    number_values,
    size_in,
)
from pipeline.monitor.surroundings import Bins, Story
from pipeline.monitor.text import compared

BEFORE, AFTER = Look(GREY, MUTED), LOOKS[1]


@dataclass(frozen=True, slots=True)
class Level:
    """A mean over the observations before a change, or after it."""

    name: str
    begin: int
    end: int
    mean: float | None
    std_error: float | None
    look: Look


def draw_bins(axes: Axes, bins: Bins) -> list[float]:
    """Draw the mean of each bin ± its standard error; return the means."""
    found = [(x, moments) for x, moments in bins if moments.n > 1]
    means = [moments.mean for _, moments in found]
    axes.errorbar(
        [x for x, _ in found],
        means,
        yerr=[moments.std_error for _, moments in found],
        fmt=".",
        ms=3.5,
        color=GREY,
        elinewidth=0.5,
        zorder=3,
    )
    return means


def levels_of(
    story: Story,
    before: tuple[float | None, float | None],
    after: tuple[float | None, float | None],
) -> list[Level]:
    """Return what a mean ± standard error before a change, and one after it, are about."""
    window = story.window
    return [
        Level("before", max(window.begin, window.since), window.after, *before, BEFORE),
        Level("after", window.after, window.seen, *after, AFTER),
    ]


def draw_levels(
    axes: Axes, story: Story, levels: Sequence[Level], numbers: list[float], ends: list[End]
) -> None:
    """Draw the means before and after, and set the limits to what is there."""
    known = [level.mean for level in levels if level.mean is not None]
    one, other = levels
    texts = compared(one.mean, other.mean, one.std_error, other.std_error)
    for level, text in zip(levels, texts, strict=True):
        if level.mean is None:
            continue
        error = level.std_error
        span = [level.begin, level.end]
        axes.plot(span, [level.mean] * 2, color=level.look.text, lw=2.2, zorder=8)
        if error is not None:
            low, high = level.mean - error, level.mean + error
            axes.fill_between(span, low, high, color=level.look.color, alpha=0.35, lw=0, zorder=2)
        ends.append(End(level.mean, f"{level.name} {text}", level.look.text))
    low, high = min([0.0, *numbers, *known]), max([0.0, *numbers, *known])
    extent = (high - low) or 1.0
    axes.set_ylim(low - 0.06 * extent, high + 0.06 * extent)
    axes.set_xlim(story.window.begin, story.window.end)
    number_values(axes, 4)
    axes.yaxis.set_label_coords(-0.47 / size_in(axes)[0], 0.5)
    axes.axvspan(story.window.after, story.window.seen, color=AFTER.color, alpha=0.07, lw=0)
    axes.axvline(story.window.seen, color=INK, lw=0.8, ls=(0, (4, 3)), zorder=1.5)
    label_ends(axes, ends, size_pt=SMALL_PT, height_in=size_in(axes)[1], leads=False)


def name_times(axes: Axes, story: Story) -> None:
    """Write where the change lies and where it was noticed, with room for it above the lines."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.14 * (high - low))
    box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
    window = story.window
    inch = (window.end - window.begin) / size_in(axes)[0]
    for seq, text, side, shift, room in (
        (window.after, "before", "right", -3, window.after - window.begin),
        (window.seen, "noticed", "left", 3, window.end - window.seen),
    ):
        if text_width(text, SMALL_PT) + 0.08 > room / inch:
            continue
        axes.annotate(
            text,
            (seq, 1),
            xytext=(shift, -2),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="top",
            fontsize=SMALL_PT,
            bbox=box,
            zorder=9,
        )
