"""Looks at the types of calls at which the product, to save time, does not look."""

from collections.abc import Callable
from typing import Any

import numba
import pytest
from numba import types

from fluxplain.evaluate.compiled import Direct


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
    return [_layout(numba.typeof(each)) for each in given]


def _layout(of: Any) -> object:
    # whether an array may be written to makes no difference to its numbers
    return (of.dtype, of.ndim, of.layout) if isinstance(of, types.Array) else of
