"""The square that naive Bayes takes is Python's, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.forest.bayes import square
from tests.kit.support import PROPERTY


@PROPERTY
@given(st.floats(allow_nan=False, max_value=1e154, min_value=-1e154))
def test_of_any_number(number: float) -> None:
    assert square(number, 2.0) == number**2


def test_of_many_numbers() -> None:
    """Some have a power that is not the nearest float of the exact square."""
    rng = np.random.default_rng(1)
    numbers = (rng.normal(size=200_000) * np.exp(10 * rng.normal(size=200_000))).tolist()
    assert any(number**2 != number * number for number in numbers)
    assert all(square(number, 2.0) == number**2 for number in numbers)
