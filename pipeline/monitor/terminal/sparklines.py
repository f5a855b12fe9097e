"""One-line text charts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table
from rich.text import Text

from fluxplain.schemas import Change

BLOCKS = "▁▂▃▄▅▆▇█"

EIGHTHS = " ▏▎▍▌▋▊▉█"

MARKS = {"rose": "▲", "fell": "▼"}

MAX_CELLS = 80
"""Widest trend, in cells."""

GAP = 2
"""Cells between columns."""


def sparkline(values: Sequence[float | None], low: float, high: float) -> str:
    """Return one block per value, whose height is its position between ``low`` and ``high``.

    Values outside are clipped; None is a space.
    """
    top = len(BLOCKS) - 1
    cells = [" " if v is None else BLOCKS[round(top * share(v, low, high))] for v in values]
    return "".join(cells)


def bar(value: float, low: float, high: float, cells: int) -> str:
    """Return a horizontal bar whose length is the value's position between ``low`` and ``high``."""
    eighths = round(8 * cells * share(value, low, high))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def share(value: float, low: float, high: float) -> float:
    """Return a clipped position between ``low`` (0) and ``high`` (1); 0 if both are equal."""
    # divide first: the difference of the largest numbers would be infinite
    scale = max(abs(low), abs(high)) or 1.0
    width = high / scale - low / scale
    at = (value / scale - low / scale) / width if width > 0.0 else 0.0
    return min(max(at, 0.0), 1.0)


def binned(
    seqs: npt.ArrayLike, values: npt.ArrayLike, span: tuple[int, int], cells: int
) -> list[float | None]:
    """Return the mean of the values in each of ``cells`` equal parts of a range of seqs.

    An empty part repeats the previous one; it is None before the first value.
    """
    at = np.array([cell(int(seq), span, cells) for seq in np.asarray(seqs)], np.int64)
    counts = np.bincount(at, minlength=cells)
    totals = np.bincount(at, np.asarray(values, np.float64), minlength=cells)
    means: list[float | None] = []
    for total, count in zip(totals, counts, strict=True):
        before = means[-1] if means else None
        means.append(float(total / count) if count else before)
    return means


def cell(seq: int, span: tuple[int, int], cells: int) -> int:
    """Return the index of the part of a range that contains a seq or is nearest."""
    first, last = span
    at = (seq - first) * cells // max(last - first + 1, 1)
    return min(max(at, 0), cells - 1)


def marks(
    changes: Sequence[Change], key: tuple[str, str], span: tuple[int, int], cells: int
) -> dict[int, str]:
    """Return cell → mark for the drifts of one explanation."""
    return {
        cell(change.seq, span, cells): mark(change)
        for change in changes
        if change.kind == "drift" and (change.feature, change.method) == key
    }


def mark(change: Change) -> str:
    """Return the mark of a change, which shows whether the importance rose or fell."""
    rose = change.before is None or change.after is None or change.after > change.before
    return MARKS[change.direction or ("rose" if rose else "fell")]


def plain_table(*, left: int = 0, right: int = 1) -> Table:
    """Return a table with only a line below its header."""
    padding = (0, right, 0, left)
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding)


def one_line(text: str, **style: Any) -> Text:
    """Return text that is cut, not wrapped, at the terminal's edge."""
    return Text(text, no_wrap=True, overflow="ellipsis", **style)
