"""Times of things that take turns in one process, and their ratios."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

T = TypeVar("T")

Sides = tuple[str, ...]

BLOCK = 50
"""Records of which the times are summed: garbage collection and the like fall on one side only."""


class Stopwatch:
    """Sums the time of each side over blocks of records."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def time(self, side: str, work: Callable[..., T], *arguments: Any) -> T:
        """Do the work of one record, and note how long it took."""
        begin = time.perf_counter()
        result = work(*arguments)
        self._times.setdefault(side, []).append(time.perf_counter() - begin)
        return result

    def blocks(self, *sides: str) -> list[float]:
        """Return the seconds of each block of records, of some sides together."""
        records = zip(*(self._times[side] for side in sides), strict=True)
        sums = [sum(record) for record in records]
        return [sum(sums[i : i + BLOCK]) for i in range(0, len(sums) - BLOCK + 1, BLOCK)]

    def microseconds(self, *sides: str) -> float:
        """Return the median time of a record."""
        return statistics.median(self.blocks(*sides)) / BLOCK * 1e6


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes
    ----------
    name
        What was measured.
    ours, other
        Both sides, with their unit.
    ratio
        The median of the blocks' ratios.
    spread
        Their quartiles.
    bar
        What it should be; None if there is no bar.
    """

    name: str
    ours: str
    other: str
    ratio: float
    spread: tuple[float, float] | None = None
    bar: str | None = None

    def line(self) -> str:
        """Return ``name: ours, other, ratio``."""
        bar = f"; bar: {self.bar}" if self.bar else ""
        return f"{self.name}: {self.ours}, {self.other}, {self.ratio_text}{bar}"

    @property
    def ratio_text(self) -> str:
        """The ratio, and its spread if it has one."""
        spread = f" ({self.spread[0]:.2f} to {self.spread[1]:.2f})" if self.spread else ""
        return f"{self.ratio:.3g}{spread}"

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return a figure that was written as JSON."""
        spread = fields["spread"]
        return cls(**{**fields, "spread": spread and tuple(spread)})


def faster(
    name: str, watch: Stopwatch, ours: Sides, other: Sides, bar: str | None = None
) -> Figure:
    """Return how many times faster our sides are than the others."""
    pairs = zip(watch.blocks(*ours), watch.blocks(*other), strict=True)
    return _figure(name, watch, ours, other, bar, [b / a for a, b in pairs])


def share(name: str, watch: Stopwatch, ours: Sides, other: Sides, bar: str | None = None) -> Figure:
    """Return our sides' cost as a share of the others'."""
    pairs = zip(watch.blocks(*ours), watch.blocks(*other), strict=True)
    return _figure(name, watch, ours, other, bar, [a / b for a, b in pairs])


def _figure(
    name: str, watch: Stopwatch, ours: Sides, other: Sides, bar: str | None, ratios: list[float]
) -> Figure:
    middle, spread = quartiles(ratios)
    mine, theirs = (f"{watch.microseconds(*sides):,.0f} µs" for sides in (ours, other))
    return Figure(name, mine, theirs, middle, spread, bar)


def quartiles(ratios: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the median, and the quartiles beside it."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, (low, high)
