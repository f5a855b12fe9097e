"""Bounded samples of the past, from which replacement values and grids are drawn.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries (a tree storage: at each leaf), and stores copies. Between any two updates it can be pickled
and resumes the same.
"""

from typing import TYPE_CHECKING

from fluxplain.explain.storage.category_codes import Codes
from fluxplain.explain.storage.extremes import RollingExtremes
from fluxplain.explain.storage.histogram import Histogram
from fluxplain.explain.storage.number_storage import NumberStorage
from fluxplain.explain.storage.recent import AgeWeightedCategories, CategoryStorage
from fluxplain.explain.storage.reservoirs import (
    GeometricReservoir,
    Reservoir,
    SlidingWindow,
    UniformReservoir,
    make_reservoir,
)
from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.explain.storage.tree_storage import TreeStorage
else:
    __getattr__, __dir__ = lazy(__name__, tree_storage=["TreeStorage"])  # loads River

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
