"""What replacement values and grids are drawn from: bounded samples of the past.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries (a tree storage: at each leaf), and stores copies. Between any two updates it can be pickled
and goes on the same.
"""

from pipeline.explain.storage.categories import Codes
from pipeline.explain.storage.extremes import RollingExtremes
from pipeline.explain.storage.histogram import Histogram
from pipeline.explain.storage.recent import (
    AgeWeightedCategories,
    AgeWeightedStorage,
    CategoryStorage,
    FrequencyStorage,
    FrequencyStorages,
)
from pipeline.explain.storage.reservoirs import (
    GeometricReservoir,
    Reservoir,
    SlidingWindow,
    UniformReservoir,
    make_reservoir,
)
from pipeline.explain.storage.trees import TreeStorage

__all__ = [
    "AgeWeightedCategories",
    "AgeWeightedStorage",
    "CategoryStorage",
    "Codes",
    "FrequencyStorage",
    "FrequencyStorages",
    "GeometricReservoir",
    "Histogram",
    "Reservoir",
    "RollingExtremes",
    "SlidingWindow",
    "TreeStorage",
    "UniformReservoir",
    "make_reservoir",
]
