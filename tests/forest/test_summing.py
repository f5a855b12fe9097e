"""Compiled sums are those of Python's ``sum``, to the last bit, on the Python that runs them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fluxplain.forest.summing import mixed_total_at, total, total_at
from tests.kit.support import PROPERTY

FLOATS = st.lists(st.floats() | st.sampled_from([1.0, -1.0, 1e16, -1e16, 1e308, -0.0, 5e-324]))

INTEGERS = st.integers(-(2**40), 2**40)

MIXED = st.lists(st.floats() | st.sampled_from([1e16, -1e16]) | INTEGERS)


@PROPERTY
@given(FLOATS)
@example([])
@example([float("inf")])
@example([float("inf"), float("-inf")])
@example([float("inf"), 1.0])
@example([1e308, 1e308, -1e308])
@example([0.1] * 10)
@example([1e16, 1.0, -1e16])
@example([-0.0, -0.0])
def test_floats(numbers: list[float]) -> None:
    given, n = np.array(numbers, np.float64), len(numbers)
    order = np.arange(n)
    expected = repr(float(sum(numbers)))
    assert repr(total(n, given)) == expected
    assert repr(total_at(n, order, given)) == expected
    assert repr(total_at(n, order[::-1].copy(), given[::-1].copy())) == expected
    assert repr(mixed_total_at(n, order, given, np.zeros(n, np.bool_))) == expected


@PROPERTY
@given(MIXED)
@example([3, 0.1, 0.2])
@example([0.1, 3, 0.2])
@example([1e16, 1, -1e16])
@example([1, 1e16, -1e16])
@example([1, 1e16, 1.0, -1e16])
@example([2**40, 2**40, 0.1])
def test_integers_among_floats(numbers: list[float]) -> None:
    given, n = np.array(numbers, np.float64), len(numbers)
    is_integer = np.array([isinstance(number, int) for number in numbers], np.bool_)
    found = mixed_total_at(n, np.arange(n), given, is_integer)
    assert repr(found) == repr(float(sum(numbers)))


@pytest.mark.parametrize("places", [[], [2], [3, 0], [4, 1, 2, 0, 3]])
def test_only_some_places(places: list[int]) -> None:
    numbers = [0.1, 1e16, 0.3, -1e16, 0.7]
    found = total_at(len(places), np.array(places, np.int64), np.array(numbers))
    assert repr(found) == repr(float(sum(numbers[place] for place in places)))
