"""Compares two states, value by value and bit by bit.

Equal states can have different pickles: a pickle also records which equal values are the same
object, and a state that was loaded shares other objects than one that has just learned. No result
depends on that.
"""

import copyreg
import random
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

ATOMS = (str, bytes, int, complex, type(None), type(Ellipsis))

SINGLE = (type, FunctionType, BuiltinFunctionType)
"""Types whose objects are pickled by name: only one object has a value."""

GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)

PROTOCOL = 4

Place = tuple[Any, ...]
"""The place of a value in a state: that of the value that holds it, and the key there."""

MISSING = object()
"""Stands for an item that only the other state has."""


class _Todo(NamedTuple):
    """Two values to compare, and their place."""

    place: Place
    first: Any
    second: Any


def first_difference(first: Any, second: Any) -> str | None:
    """Return a place where two picklable states differ; None if they are equal.

    Numbers must have the same bits, and dictionaries the same items in the same order.

    Examples
    --------
    >>> first_difference({"a": [1.0, float("nan")]}, {"a": [1.0, float("nan")]})
    >>> first_difference({"a": [0.0]}, {"a": [-0.0]})
    'a/0'
    """
    todo, seen = [_Todo((), first, second)], dict[tuple[int, int], tuple[Any, Any]]()
    while todo:
        place, one, other = todo.pop()
        if one is other:
            continue
        inner: Iterable[_Todo] | None = ()
        if type(one) is not type(other):
            inner = None
        elif isinstance(one, ATOMS):
            inner = () if one == other else None
        elif type(one) is float:
            inner = () if struct.pack("<d", one) == struct.pack("<d", other) else None
        elif (id(one), id(other)) not in seen:
            seen[id(one), id(other)] = one, other  # keeps both, so that no other gets their id
            inner = _inner(place, one, other)
        if inner is None:
            return _written(place)
        todo += inner
    return None


def _inner(place: Place, one: Any, other: Any) -> Iterable[_Todo] | None:
    """Return the pairs that decide whether two values are equal; None if they are not."""
    if isinstance(one, SINGLE):
        return None  # they are not the same object
    if type(one) in {list, tuple, deque}:
        return _paired(place, one, other)
    if type(one) is dict:
        keys = (key for key in one if not _is_unseeded(one, other, key))
        values = (_Todo((place, key), one[key], other.get(key, MISSING)) for key in keys)
        return [*_paired(place, one, other), *values]
    if type(one) in {set, frozenset}:
        return () if one == other else None
    if type(one) is np.ndarray and one.dtype != object:
        return () if _of_array(one) == _of_array(other) else None
    return _paired(place, _reduced(one), _reduced(other))


def _is_unseeded(one: dict[Any, Any], other: dict[Any, Any], key: Any) -> bool:
    """Return whether a value is a generator that began at random, as in River's distributions.

    A model that draws from it gives other results after each start from the log's beginning.
    """
    is_generator = isinstance(one[key], GENERATORS) and type(one[key]) is type(other.get(key))
    return is_generator and one.get("seed", 0) is None and other.get("seed", 0) is None


def _paired(place: Place, one: Iterable[Any], other: Iterable[Any]) -> Iterator[_Todo]:
    pairs = zip_longest(one, other, fillvalue=MISSING)
    return (_Todo((place, i), *pair) for i, pair in enumerate(pairs))


def _of_array(array: Any) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def _reduced(value: Any) -> list[Any]:
    """Return what pickle would store of an object."""
    reduce = copyreg.dispatch_table.get(type(value))
    found = reduce(value) if reduce else value.__reduce_ex__(PROTOCOL)
    if isinstance(found, str):
        return [found]
    return [list(each) if isinstance(each, Iterator) else each for each in found]


def _written(place: Place) -> str:
    keys: list[str] = []
    while place:
        place, key = place
        keys.append(str(key))
    return "/".join(reversed(keys))
