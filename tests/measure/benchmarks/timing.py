"""What is measured: times of things that take turns in one process, and ratios as figures."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.kit.command import Clock

T = TypeVar("T")

Sides = tuple[str, ...]

MICROSECONDS = "{:,.0f} µs"

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
        """Return the microseconds of a record, some sides together: the mean of each block."""
        records = zip(*(self._times[side] for side in sides), strict=True)
        sums = [sum(record) for record in records]
        return [
            sum(sums[i : i + BLOCK]) / BLOCK * 1e6 for i in range(0, len(sums) - BLOCK + 1, BLOCK)
        ]

    def pairs(self, ours: Sides, other: Sides) -> Iterator[tuple[float, float]]:
        """Return the same of two groups of sides, block by block."""
        return zip(self.blocks(*ours), self.blocks(*other), strict=True)

    def microseconds(self, *sides: str) -> float:
        """Return the median time of a record."""
        return statistics.median(self.blocks(*sides))


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report: what was measured on both sides, and the ratio of the two.

    ``spread`` are the quartiles of the blocks' ratios, ``ratio`` is their median; ``bar`` is what
    the ratio should be.
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
    def of(
        cls, name: str, ours: float, other: float, form: str = "{:.0f}", bar: str | None = None
    ) -> Self:
        """Return the ratio of two numbers, each printed in a form such as ``"{:.2f} ms"``."""
        return cls(name, form.format(ours), form.format(other), ours / other, bar=bar)

    @classmethod
    def of_pairs(
        cls,
        name: str,
        pairs: Iterable[tuple[float, float]],
        form: str = "{:.0f}",
        bar: str | None = None,
        *,
        faster: bool = False,
    ) -> Self:
        """Return the medians of both sides, and of the pairs' ratios: other ÷ ours if `faster`."""
        pairs = list(pairs)
        ours, other = (form.format(statistics.median(side)) for side in zip(*pairs, strict=True))
        return cls(
            name, ours, other, *quartiles([b / a if faster else a / b for a, b in pairs]), bar
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks: an empty folder for whatever a part needs, and a clock."""

    folder: Path
    clock: Clock


Measure = Callable[[Run], Iterator[Figure]]
"""A part: yields its figures while nothing runs that it has started."""


def faster(
    name: str, watch: Stopwatch, ours: Sides, other: Sides, bar: str | None = None
) -> Figure:
    """Return how many times faster our sides are than the others."""
    return Figure.of_pairs(name, watch.pairs(ours, other), MICROSECONDS, bar, faster=True)


def share(name: str, watch: Stopwatch, ours: Sides, other: Sides, bar: str | None = None) -> Figure:
    """Return our sides' cost as a share of the others'."""
    return Figure.of_pairs(name, watch.pairs(ours, other), MICROSECONDS, bar)


def quartiles(ratios: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the median, and the quartiles beside it."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, (low, high)
