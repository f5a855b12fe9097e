"""Text that fits: names as long as there is room for, and labels that keep apart."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

from pipeline.monitor.text import printable

ELLIPSIS, UNKNOWN = "…", "□"

FONT = "DejaVu Sans"
"""Comes with matplotlib, so that figures look the same everywhere."""


def legible(text: str) -> str:
    """Return text with a box for each character that the font lacks, or that cannot be printed.

    Examples
    --------
    >>> legible("größe 价格")
    'größe □□'
    """
    return "".join(c if c == " " or _has_glyph(c) else UNKNOWN for c in printable(text))


@lru_cache(maxsize=10_000)
def _has_glyph(character: str) -> bool:
    font = get_font(findfont(FontProperties(family=FONT)))
    return font.get_char_index(ord(character)) != 0


@lru_cache(maxsize=10_000)
def text_width(text: str, size_pt: float, *, bold: bool = False) -> float:
    """Return how wide a line of text is when it is drawn, in inches."""
    font = FontProperties(family=FONT, size=size_pt, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(legible(text), font, ismath=False)
    return float(width) / 72


def shortened(name: str, room_in: float, size_pt: float, *, bold: bool = False) -> str:
    """Return a name that is not wider than the room: the middle of a longer one is left out.

    Names of features often begin alike, and often end alike.

    Examples
    --------
    >>> shortened("amount", 1.0, 8.0), shortened("amount_of_the_last_seven_days", 1.0, 8.0)
    ('amount', 'amount_…n_days')
    """
    name = legible(name[:MAX_READ] if len(name) <= MAX_READ else name[:50] + name[-50:])
    if text_width(name, size_pt, bold=bold) <= room_in:
        return name
    low, high = 0, len(name) - 1
    while low < high:
        kept = (low + high + 1) // 2
        if text_width(_cut(name, kept), size_pt, bold=bold) <= room_in:
            low = kept
        else:
            high = kept - 1
    return _cut(name, low)


MAX_READ = 200
"""Longest name that is looked at as a whole; none that long fits anywhere."""


def _cut(name: str, kept: int) -> str:
    end = kept // 2
    return name[: kept - end] + ELLIPSIS + (name[-end:] if end else "")


def short_names(names: Iterable[str], room_in: float, size_pt: float) -> dict[str, str]:
    """Return name → what to write for it; no two alike.

    Examples
    --------
    >>> alike = ["amount of seven last days", "amount of eleven last days"]
    >>> list(short_names(alike, 0.6, 8.0).values())
    ['amo…ays', 'amo…ays·2']
    """
    short: dict[str, str] = {}
    used: dict[str, int] = {}
    for name in names:
        text = shortened(name, room_in, size_pt)
        used[text] = used.get(text, 0) + 1
        short[name] = text if used[text] == 1 else f"{text}·{used[text]}"
    return short


def wrapped(text: str, room_in: float, size_pt: float, *, bold: bool = False) -> str:
    """Return text broken into lines that are not wider than the room.

    Examples
    --------
    >>> wrapped("where the model looks now", 0.8, 8.0)
    'where the\\nmodel looks\\nnow'
    """
    lines: list[str] = []
    for word in legible(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size_pt, bold=bold) <= room_in:
            lines[-1] = longer
        else:
            lines.append(shortened(word, room_in, size_pt, bold=bold))
    return "\n".join(lines)


class End(NamedTuple):
    """What to write beside the end of a line.

    Attributes
    ----------
    value
        The height at which the line ends.
    text, color
        What to write.
    at
        Where the line ends; None for the panel's right edge.
    """

    value: float
    text: str
    color: str
    at: float | None = None


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions at least ``gap`` apart, in [low, high], as close as can be to the wanted.

    The wanted ones must be in increasing order. Least squares: neighbours that are too close are
    placed around their common mean.

    Examples
    --------
    >>> spread([0.0, 5.0, 5.2, 9.0], gap=1.0, low=0.0, high=10.0)
    [0.0, 4.6, 5.6, 9.0]
    """
    blocks: list[tuple[float, int]] = []  # mean of the wanted positions, less their gaps; size
    for i, position in enumerate(wanted):
        mean, size = position - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, size = (other * n + mean * size) / (n + size), n + size
        blocks.append((mean, size))
    top = max(low, high - gap * (len(wanted) - 1))
    bases = [min(max(mean, low), top) for mean, size in blocks for _ in range(size)]
    return [base + i * gap for i, base in enumerate(bases)]


def label_ends(
    axes: Axes, ends: Iterable[End], *, size_pt: float, height_in: float, leads: bool = True
) -> None:
    """Write names at the right of a panel, each beside the end of its line and none on another.

    Parameters
    ----------
    axes
        The panel; its limits must not change any more.
    ends
        What to write; as many as lines of text are as high as the panel.
    size_pt
        Of the letters, in points.
    height_in
        Of the panel, in inches.
    leads
        Whether a thin line leads from each end to the name.
    """
    low, high = axes.get_ylim()
    newest = axes.get_xlim()[1]
    labels = sorted(ends, key=lambda end: end.value)
    wanted = [(min(max(end.value, low), high) - low) / (high - low) for end in labels]
    places = spread(wanted, 1.2 * size_pt / 72 / height_in, 0.0, 1.0)
    for end, at, place in zip(labels, wanted, places, strict=True):
        axes.annotate(
            end.text,
            (newest if end.at is None else end.at, low + at * (high - low)),
            xytext=(1.025, place),
            textcoords="axes fraction",
            fontsize=size_pt,
            color=end.color,
            va="center",
            annotation_clip=False,
            arrowprops=_leader(end) if leads else None,
        )


def _leader(end: End) -> dict[str, Any]:
    return {
        "arrowstyle": "-",
        "color": end.color,
        "lw": 0.6,
        "ls": "-" if end.at is None else ":",
        "relpos": (0, 0.5),
        "shrinkA": 0,
        "shrinkB": 1,
    }
