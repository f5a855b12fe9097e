"""What every part of a run is given."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kit.command import Clock
from tests.measure.benchmarks.timing import Figure


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks.

    Attributes
    ----------
    folder
        For whatever a part needs; empty when it begins.
    clock
        Says how far long work is.
    """

    folder: Path
    clock: Clock


Measure = Callable[[Run], Iterator[Figure]]
"""A part: yields its figures while nothing runs that it has started."""
