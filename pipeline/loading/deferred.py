"""Modules of libraries that are loaded when they are first used, not when they are imported."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

DEFERRED = frozenset({"river.drift.datasets", "numpy.f2py", "numpy.testing"})
"""River's drift detectors import their example data, and with it pandas and scikit-learn: a quarter
of a worker's start, and 60 MB of its memory, for what it never uses. SciPy asks NumPy for each of
its names, and so imports its compiler of Fortran and its test tools."""


class Deferring(MetaPathFinder):
    """Finds the modules to be deferred; other finders find all others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, whose loader waits until an attribute is used."""
        if name not in DEFERRED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer() -> None:
    """Defer from here on, in this process."""
    if not any(isinstance(finder, Deferring) for finder in sys.meta_path):
        sys.meta_path.insert(0, Deferring())
