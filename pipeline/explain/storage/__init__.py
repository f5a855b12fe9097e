"""What replacement values and grids are drawn from: bounded samples of the past.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries, and stores copies.
"""

from pipeline.explain.storage.base import check_probability, check_size
from pipeline.explain.storage.categories import Codes
from pipeline.explain.storage.recent import (
    CategoryStorage,
    FrequencyStorage,
    FrequencyStorages,
)
from pipeline.explain.storage.reservoirs import (
    GeometricReservoir,
    Reservoir,
    UniformReservoir,
    make_reservoir,
)
from pipeline.explain.storage.trees import TreeStorage

__all__ = [
    "CategoryStorage",
    "Codes",
    "FrequencyStorage",
    "FrequencyStorages",
    "GeometricReservoir",
    "Reservoir",
    "TreeStorage",
    "UniformReservoir",
    "check_probability",
    "check_size",
    "make_reservoir",
]
