"""The band of an importance: as high as it is uncertain, around its trend, on a scale."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.monitor.terminal.importances import SHADE, render_bands
from fluxplain.results.stream_results import Key
from fluxplain.schemas import Explanation, Record
from tests.kit.records import STREAM, change, explanation, store_of
from tests.kit.support import PROPERTY
from tests.monitor.terminal.console import printed

LINES = 8

AGE: Key = ("age", "ipfi")


def shown(records: Sequence[Record], *keys: Key, width: int = 47, lines: int = LINES) -> list[str]:
    """Return the lines of what is drawn, the title first."""
    view = store_of(records).streams[STREAM].at()
    text = printed(render_bands(view, keys or [AGE], width, lines), width=width)
    return [line.rstrip() for line in text.splitlines()]


def heights(lines: list[str]) -> list[int]:
    """Return on how many lines something is drawn, column by column."""
    drawn = [line.ljust(47)[line.index("┤" if "┤" in line else "│") + 1 :] for line in lines[1:]]
    return [sum(c != " " for c in column) for column in zip(*drawn, strict=True)]


def rising(n: int = 400, *, std_error: float = 0.02) -> list[Explanation]:
    return [explanation("age", seq, 0.1 + 0.001 * seq, std_error=std_error) for seq in range(n)]


def test_a_title_says_what_is_drawn_and_the_scale_says_from_where_to_where() -> None:
    title, top, *_, bottom = shown(rising())
    assert title == "iPFI of age, ░ two standard errors"
    # without the first tenth
    assert top.startswith("0.539 ┤")
    assert bottom.startswith("0.100 ┤")


def test_a_band_is_as_high_as_two_standard_errors_on_either_side() -> None:
    narrow, wide = (heights(shown(rising(std_error=each))) for each in (0.001, 0.1))
    assert sum(narrow) < 1.5 * len(narrow)
    assert sum(wide) > 3 * len(wide)


def test_a_band_that_becomes_narrower_is_drawn_so() -> None:
    lines = shown([explanation("age", n, 0.5, std_error=0.5 / (1 + n / 50)) for n in range(500)])
    found = heights(lines)
    assert found == sorted(found, reverse=True)
    assert found[0] == LINES
    assert found[-1] == 2


def test_the_trend_lies_in_the_band_and_goes_from_left_to_right() -> None:
    lines = shown(rising())[1:]
    column = len("0.539 ┤")
    trends = [[i for i, c in enumerate(line[column:]) if c in "▀▄"] for line in lines]
    flat = [i for line in reversed(trends) for i in line]
    assert flat == sorted(flat) == list(range(len(flat)))
    inside = lines[LINES // 2][column:].strip()
    assert inside.startswith(SHADE)
    assert inside.endswith(SHADE)


def test_zero_is_labelled_if_it_is_between_the_ends() -> None:
    lines = shown([explanation("age", n, 0.001, std_error=0.01) for n in range(100)])
    assert [line.split()[0] for line in lines[1:] if "┤" in line] == ["0.0210", "0", "-0.0190"]
    assert "0 ┤" not in "\n".join(shown(rising())[2:-1])


def test_changes_of_this_explanation_are_marked_where_they_were_seen() -> None:
    records: list[Record] = [*rising(), change("age", 200), change("age", 300, method="isage")]
    lines = shown([*records, replace(change("loan", 100), direction="fell")])
    text = "\n".join(lines)
    assert (text.count("▲"), text.count("▼")) == (1, 0)
    [line] = [line for line in lines if "▲" in line]
    assert line.index("▲") == len("0.539 ┤") + 20


def test_a_wide_terminal_shows_several_and_a_narrow_one_the_first() -> None:
    records = [*rising(), *[replace(record, feature="loan") for record in rising()]]
    loan: Key = ("loan", "ipfi")
    assert "loan" not in shown(records, AGE, loan, width=80)[0]
    lines = shown(records, AGE, loan, width=120)
    assert lines[0].split("  ")[0] == "iPFI of age, ░ two standard errors"
    assert lines[0].endswith("iPFI of loan, ░ two standard errors")
    assert all(sum(line.count(axis) for axis in "│┤") == 2 for line in lines[1:])
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("width", [1, 10, 30, 47])
def test_any_width_is_enough(width: int) -> None:
    name = replace(rising(1)[0], feature="x\x1b[2J" * 20)
    lines = shown([name], (name.feature, "ipfi"), width=width)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


@PROPERTY
@given(
    st.lists(st.tuples(st.floats(-1e150, 1e150), st.floats(0.0, 1e150)), min_size=1, max_size=60),
    st.integers(4, 8),
)
def test_whatever_the_numbers_a_band_has_its_lines_and_a_trend(
    numbers: list[tuple[float, float]], lines: int
) -> None:
    records = [explanation("age", n, v, std_error=e) for n, (v, e) in enumerate(numbers)]
    drawn = shown(records, lines=lines)
    assert len(drawn) == lines + 1
    assert any(half in line for line in drawn for half in "▀▄")


def test_equal_numbers_without_an_error_have_one_scale() -> None:
    lines = shown([explanation("age", n, 0.5, std_error=0.0) for n in range(9)])
    assert [line for line in lines[1:] if "┤" in line] == [lines[-1]]
    assert lines[-1].startswith("0.500 ┤▄")
