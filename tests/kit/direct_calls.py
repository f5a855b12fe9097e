"""Looks at the types of calls at which the product, to save time, does not look."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate.compiled import Direct

SMALL = ("f4", "f2", "i4", "i2", "i1", "u1", "u2", "u4", "u8")
"""Types of NumPy's numbers that are not those of Python's."""


def check_direct_calls() -> None:
    """Fail a test that calls a :class:`Direct` with other types than the first call had.

    Such a call would read numbers as others, silently. It holds for those made from now on.
    """
    first = Direct._first_call

    def checked(self: Direct[Any], *given: Any) -> Any:
        found = first(self, *given)
        if self.call != self._first_call:
            self.call = _checked(self.call, _types_of(given))
        return found

    Direct._first_call = checked  # type: ignore[method-assign]


def _checked(call: Callable[..., Any], known: list[object]) -> Callable[..., Any]:
    def checked(*given: Any) -> Any:
        if _types_of(given) != known:
            pytest.fail(f"a direct call with {_types_of(given)}, after one with {known}")
        return call(*given)

    return checked


def _types_of(given: tuple[Any, ...]) -> list[object]:
    return [*map(_type_of, given)]


def _type_of(given: Any) -> object:
    """Return what a compiled function relies on, in less time than Numba takes."""
    if isinstance(given, np.ndarray):
        return given.dtype, given.ndim, given.flags.c_contiguous
    if isinstance(given, np.generic):
        return given.dtype.type if given.dtype in SMALL else type(given.item())
    return type(given)
