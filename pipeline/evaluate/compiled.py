"""Inner loops, compiled by Numba where it is installed; without it they run as they are.

The compiler neither reorders nor fuses the operations of floats, so both give the same bits.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError:
    numba = None

IS_COMPILED = numba is not None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Return the function, compiled when it is first called."""
    # error_model: a division by zero gives an infinity, as it does in the arrays of NumPy
    return numba.njit(cache=True, error_model="numpy")(function) if numba else function


def plain(function: F) -> F:
    """Return what was compiled, as Python: for a few numbers, that is sooner called."""
    return cast(F, getattr(function, "py_func", function))
