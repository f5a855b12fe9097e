"""Compiles inner loops with Numba if it is installed; otherwise they run as Python.

The compiler neither reorders nor fuses floating-point operations, so both give the same bits.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

try:
    import numba
except ImportError:
    numba = None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Return the function, compiled when it is first called."""
    return _compiled(function)


def borrowing(function: F) -> F:
    """Return the function, compiled when it is first called, if it makes no arrays.

    It counts no references to those that it is given, which can take longer than the computing.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: bool) -> F:
    if not numba:
        return function
    # error_model: a division by zero gives an infinity, as in NumPy
    return cast(F, numba.njit(cache=True, error_model="numpy", **options)(function))


def inlined(function: F) -> F:
    """Return the function, compiled into its callers: passing arrays to it would take long."""
    if not numba:
        return function
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))


def plain(function: F) -> F:
    """Return the Python version of a compiled function: for a few numbers, its call is faster."""
    return cast(F, getattr(function, "py_func", function))


class Direct(Generic[F]):
    """Calls a compiled function that always takes the same types, without looking at them again.

    Numba looks at the types of each call's arguments, which takes a microsecond for a struct. The
    types are those of the first call: the caller sees to it that there are no others, and that
    arrays have the same layout.
    """

    def __init__(self, function: F) -> None:
        self._function = function
        self.call: F = cast(F, self._first_call)

    def _first_call(self, *given: Any) -> Any:
        found = self._function(*given)
        overloads = getattr(self._function, "overloads", None)
        if overloads:
            self.call = overloads[tuple(map(numba.typeof, given))].entry_point
        return found
