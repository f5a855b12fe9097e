"""Charts of one line of text."""

from collections.abc import Iterable, Sequence

BLOCKS = "▁▂▃▄▅▆▇█"

EIGHTHS = " ▏▎▍▌▋▊▉█"


def sparkline(values: Sequence[float | None], low: float, high: float) -> str:
    """Return a character a value: its height is where the value lies from ``low`` to ``high``.

    What lies outside is drawn at the edge, and what is None as a space.

    Examples
    --------
    >>> sparkline([None, 0.0, 0.5, 1.0, 7.0], low=0.0, high=1.0)
    ' ▁▅██'
    """
    top = len(BLOCKS) - 1
    cells = [" " if v is None else BLOCKS[round(top * share(v, low, high))] for v in values]
    return "".join(cells)


def bar(value: float, low: float, high: float, cells: int) -> str:
    """Return a horizontal bar as long as where the value lies from ``low`` to ``high``.

    Examples
    --------
    >>> bar(0.3, low=0.0, high=1.0, cells=5)
    '█▌'
    """
    eighths = round(8 * cells * share(value, low, high))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def share(value: float, low: float, high: float) -> float:
    """Return where a value lies from ``low`` (0) to ``high`` (1), not beyond; 0 if both are one."""
    # divided first: the difference of the largest numbers would be infinite
    scale = max(abs(low), abs(high)) or 1.0
    width = high / scale - low / scale
    at = (value / scale - low / scale) / width if width > 0.0 else 0.0
    return min(max(at, 0.0), 1.0)


def binned(
    points: Iterable[tuple[int, float]], first: int, last: int, cells: int
) -> list[float | None]:
    """Return the means of the values in so many equal stretches of seq.

    A stretch without any has the one before it; None before the first.

    Parameters
    ----------
    points
        (seq, value), in order.
    first, last
        The stretches reach from the one to the other, both included.
    cells
        How many stretches.

    Examples
    --------
    >>> binned([(10, 1.0), (11, 3.0), (30, 6.0)], first=0, last=39, cells=4)
    [None, 2.0, 2.0, 6.0]
    """
    totals, counts = [0.0] * cells, [0] * cells
    for seq, value in points:
        at = cell(seq, first, last, cells)
        totals[at] += value
        counts[at] += 1
    means: list[float | None] = []
    for total, count in zip(totals, counts, strict=True):
        before = means[-1] if means else None
        means.append(total / count if count else before)
    return means


def cell(seq: int, first: int, last: int, cells: int) -> int:
    """Return in which of so many equal stretches a seq lies, from 0; the nearest if in none."""
    at = (seq - first) * cells // max(last - first + 1, 1)
    return min(max(at, 0), cells - 1)
