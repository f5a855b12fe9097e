"""Bounded samples of the past, from which replacement values and grids are drawn.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries (a tree storage: at each leaf), and stores copies. Between any two updates it can be pickled
and resumes the same.
"""

from typing import TYPE_CHECKING

from pipeline.explain.storage.categories import Codes
from pipeline.explain.storage.extremes import RollingExtremes
from pipeline.explain.storage.histogram import Histogram
from pipeline.explain.storage.numbers import NumberStorage
from pipeline.explain.storage.recent import AgeWeightedCategories, CategoryStorage
from pipeline.explain.storage.reservoirs import (
    GeometricReservoir,
    Reservoir,
    SlidingWindow,
    UniformReservoir,
    make_reservoir,
)
from pipeline.lazy import lazy

if TYPE_CHECKING:
    from pipeline.explain.storage.trees import TreeStorage
else:
    __getattr__, __dir__ = lazy(__name__, trees=["TreeStorage"])  # loads River

__all__ = [
    "AgeWeightedCategories",
    "CategoryStorage",
    "Codes",
    "GeometricReservoir",
    "Histogram",
    "NumberStorage",
    "Reservoir",
    "RollingExtremes",
    "SlidingWindow",
    "TreeStorage",
    "UniformReservoir",
    "make_reservoir",
]
