"""Charts of one line: whatever the numbers, the higher is never drawn lower."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fluxplain.monitor.terminal.sparklines import BLOCKS, bar, binned, cell, share, sparkline
from tests.kit.support import PROPERTY

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@PROPERTY
@given(st.lists(FLOATS, min_size=1), FLOATS, FLOATS)
def test_heights_are_in_the_order_of_the_values(
    values: list[float], low: float, high: float
) -> None:
    line = sparkline(sorted(values), low, high)
    assert len(line) == len(values)
    assert all(BLOCKS.index(one) <= BLOCKS.index(other) for one, other in pairwise(line))
    lengths = [len(bar(value, low, high, 10)) for value in sorted(values)]
    assert lengths == sorted(lengths)
    assert lengths[-1] <= 10


@PROPERTY
@given(FLOATS, FLOATS)
def test_the_ends_are_the_lowest_and_the_highest(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert share(low, low, high) == 0.0
    assert share(high, low, high) in {0.0, 1.0}
    if high > low + 1e-9 * max(abs(low), abs(high)):
        assert sparkline([low, high], low, high) == "▁█"


@PROPERTY
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.floats(-1e6, 1e6)), min_size=1),
    st.integers(1, 50),
    st.integers(0, 1000),
)
def test_a_stretch_has_a_mean_of_what_is_in_it_or_was_before(
    points: list[tuple[int, float]], cells: int, last: int
) -> None:
    points.sort(key=lambda point: point[0])
    means = binned([seq for seq, _ in points], [v for _, v in points], (0, last), cells)
    assert len(means) == cells
    values = [value for _, value in points]
    given = [mean for mean in means if mean is not None]
    assert all(min(values) - 1e-6 <= mean <= max(values) + 1e-6 for mean in given)
    # None only before the first
    assert None not in means[cell(points[0][0], (0, last), cells) :]
    assert given


@PROPERTY
@given(st.integers(), st.integers(-100, 100), st.integers(0, 1000), st.integers(1, 50))
def test_every_seq_has_a_cell(seq: int, first: int, length: int, cells: int) -> None:
    span = first, first + length
    assert 0 <= cell(seq, span, cells) < cells
    assert cell(first, span, cells) == 0
    assert cell(first + length, span, cells) == (length * cells) // (length + 1)
