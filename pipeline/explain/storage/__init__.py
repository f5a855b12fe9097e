"""Bounded samples of the past, from which replacement values and grids are drawn.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries (a tree storage: at each leaf), and stores copies. Between any two updates it can be pickled
and resumes the same. A ``size`` that is no integer of at least 1, or an ``entrance_probability``
out of (0, 1], raises ``ValueError``.
"""

from typing import TYPE_CHECKING

from fluxplain.explain.storage.delay import Delay, entering
from fluxplain.explain.storage.recent import CategoryStorage, NumberStorage, RollingExtremes
from fluxplain.explain.storage.reservoirs import (
    GeometricReservoir,
    Reservoir,
    SlidingWindow,
    UniformReservoir,
    make_reservoir,
)
from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.explain.storage.tree_storage import Codes, TreeStorage
else:
    __getattr__, __dir__ = lazy(__name__, tree_storage=["Codes", "TreeStorage"])  # loads River

__all__ = [
    "CategoryStorage",
    "Codes",
    "Delay",
    "GeometricReservoir",
    "NumberStorage",
    "Reservoir",
    "RollingExtremes",
    "SlidingWindow",
    "TreeStorage",
    "UniformReservoir",
    "entering",
    "make_reservoir",
]
