from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.monitor.figures.text_fit import (
    legible,
    short_names,
    shortened,
    spread,
    text_width,
    wrapped,
)
from tests.kit.support import PROPERTY

SHORT_PROPERTY = settings(PROPERTY, max_examples=40)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12).map(sorted))
def test_spread_positions_are_apart_within_bounds_and_in_order(wanted: list[float]) -> None:
    places = spread(wanted, gap=2.0, low=-100.0, high=100.0)
    assert len(places) == len(wanted)
    assert all(b - a >= 2.0 - 1e-9 for a, b in pairwise(places))
    assert places[0] >= -100.0
    assert places[-1] <= 100.0 + 1e-9
    if all(b - a >= 2.0 for a, b in pairwise(wanted)):
        assert places == pytest.approx(wanted)


@SHORT_PROPERTY
@given(st.text(st.characters(codec="latin-1"), min_size=1, max_size=300), st.floats(0.4, 2.0))
def test_a_shortened_name_fits_and_one_that_fits_is_whole(name: str, room: float) -> None:
    short = shortened(name, room, 8.0)
    assert short.isprintable()
    assert text_width(short, 8.0) <= room
    if name == legible(name) and text_width(name, 8.0) <= room:
        assert short == name


def test_short_names_of_names_that_differ_in_the_middle_differ() -> None:
    names = [f"amount_of_{i}_last_days" for i in range(20)]
    short = short_names(names, 0.6, 8.0)
    assert list(short) == names
    assert len(set(short.values())) == 20


@SHORT_PROPERTY
@given(st.text(max_size=200))
def test_wrapped_lines_fit_and_lose_no_short_word(text: str) -> None:
    lines = wrapped(text, 1.0, 8.0).split("\n")
    assert all(text_width(line, 8.0) <= 1.0 for line in lines)
    words = [word for word in legible(text).split() if len(word) < 4]
    assert set(words) <= set(" ".join(lines).split())
