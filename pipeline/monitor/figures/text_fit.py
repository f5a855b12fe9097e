"""Fits text: shortens names, wraps lines, and keeps labels apart."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

from fluxplain.schemas.wording import printable

ELLIPSIS, UNKNOWN = "…", "□"

FONT = "DejaVu Sans"
"""Font that comes with matplotlib, so that figures look the same everywhere."""

MAX_READ = 200
"""Longest name to measure whole, in characters; none that long fits anywhere."""


def legible(text: str) -> str:
    """Replace each character that is unprintable or missing in the font by a box."""
    return "".join(c if c == " " or _has_glyph(c) else UNKNOWN for c in printable(text))


@lru_cache(maxsize=10_000)
def _has_glyph(character: str) -> bool:
    font = get_font(findfont(FontProperties(family=FONT)))
    return font.get_char_index(ord(character)) != 0


@lru_cache(maxsize=10_000)
def text_width(text: str, size_pt: float, *, bold: bool = False) -> float:
    """Return the width of a line of text, in inches."""
    font = FontProperties(family=FONT, size=size_pt, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(legible(text), font, ismath=False)
    return float(width) / 72


def shortened(name: str, room_in: float, size_pt: float, *, bold: bool = False) -> str:
    """Shorten a name to a width by cutting out its middle.

    Names of features often share their beginning or their end, so both are kept.
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


def _cut(name: str, kept: int) -> str:
    end = kept // 2
    return name[: kept - end] + ELLIPSIS + (name[-end:] if end else "")


def short_names(names: Iterable[str], room_in: float, size_pt: float) -> dict[str, str]:
    """Return name → shortened name, all different."""
    short: dict[str, str] = {}
    used: dict[str, int] = {}
    for name in names:
        text = shortened(name, room_in, size_pt)
        used[text] = used.get(text, 0) + 1
        short[name] = text if used[text] == 1 else f"{text}·{used[text]}"
    return short


def wrapped(text: str, room_in: float, size_pt: float, *, bold: bool = False) -> str:
    """Wrap text into lines of a maximal width."""
    lines: list[str] = []
    for word in legible(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size_pt, bold=bold) <= room_in:
            lines[-1] = longer
        else:
            lines.append(shortened(word, room_in, size_pt, bold=bold))
    return "\n".join(lines)


LEADER = {"arrowstyle": "-", "relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 1, "lw": 0.6}


class End(NamedTuple):
    """A label for the end of a line."""

    value: float
    text: str
    color: str


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions in [low, high], at least ``gap`` apart, close to the wanted ascending ones.

    The positions minimize squared distances: neighbours that are too close are placed around their
    common mean.
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


def label_ends(axes: Axes, ends: Iterable[End], *, size_pt: float, leads: bool = True) -> None:
    """Write labels right of a panel, near the ends of their lines, without overlaps."""
    low, high = axes.get_ylim()
    newest = axes.get_xlim()[1]
    height_pt = axes.get_window_extent().height * 72 / axes.figure.dpi
    labels = sorted(ends, key=lambda end: end.value)
    wanted = [(min(max(end.value, low), high) - low) / (high - low) for end in labels]
    for end, at, place in zip(
        labels, wanted, spread(wanted, 1.2 * size_pt / height_pt, 0.0, 1.0), strict=True
    ):
        axes.annotate(
            end.text,
            (newest, low + at * (high - low)),
            xytext=(1.025, place),
            textcoords="axes fraction",
            fontsize=size_pt,
            color=end.color,
            va="center",
            annotation_clip=False,
            arrowprops={**LEADER, "color": end.color} if leads else None,
        )
