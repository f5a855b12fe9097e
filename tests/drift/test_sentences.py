"""The sentence of a change: whoever reads it sees which of two numbers is larger."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.sentences import sentence
from fluxplain.schemas.change import Period
from fluxplain.schemas.wording import compared, in_short
from tests.kit.records import change, error_change, loss_change
from tests.kit.support import PROPERTY

NUMBERS = st.floats(-1e9, 1e9)
ERRORS = st.none() | st.floats(0.0, 1e6)

MOVED = re.compile(r"(rose|fell) from (\S+)(?: ± \S+)? to ([^\s,;]+)")


def near(value: float, steps: float) -> float:
    """Return a number that often reads the same."""
    return value * (1.0 + steps * 1e-6)


@PROPERTY
@given(NUMBERS, st.floats(-2.0, 2.0), ERRORS, ERRORS, NUMBERS, st.floats(-2.0, 2.0))
def test_the_numbers_agree_with_the_verb(
    before: float,
    steps: float,
    before_std_error: float | None,
    after_std_error: float | None,
    loss: float,
    loss_steps: float,
) -> None:
    moved = replace(
        change("age", 7, before=before, after=near(before, steps)),
        before_std_error=before_std_error,
        after_std_error=after_std_error,
        loss_before=loss,
        loss_after=near(loss, loss_steps),
    )
    for text, n in ((sentence(moved), 2), (in_short(moved), 1)):
        told = MOVED.findall(text)
        assert len(told) + text.count("stayed at") == n
        for verb, one, other in told:
            assert float(one) < float(other) if verb == "rose" else float(one) > float(other), text
    texts = compared(before, moved.after, before_std_error, after_std_error)
    assert (texts[0].split()[0] == texts[1].split()[0]) == (before == moved.after)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((0.2104, None), (0.21037, None), "fell from 0.2104 to 0.21037"),
        ((0.2104, 0.05), (0.2098, 0.04), "fell from 0.2104 ± 0.05 to 0.2098 ± 0.04"),
        ((0.2139, 0.001), (0.2141, 0.1), "rose from 0.2139 ± 0.001 to 0.2141 ± 0.1"),
        ((0.04, 0.01), (0.12, 0.02), "rose from 0.040 ± 0.010 to 0.120 ± 0.020"),
        ((0.1, None), (0.1, None), "stayed at 0.1"),
    ],
)
def test_what_would_read_the_same_has_more_digits_and_nothing_else(
    before: tuple[float, float | None], after: tuple[float, float | None], text: str
) -> None:
    moved = replace(
        change("age", 7, before=before[0], after=after[0]),
        before_std_error=before[1],
        after_std_error=after[1],
    )
    assert sentence(moved) == f"iPFI of age {text}"


@pytest.mark.parametrize(
    ("status", "when"), [("transient", "on average since"), ("reverted", "then")]
)
def test_a_loss_that_fell_again_is_no_all_clear(status: Any, when: str) -> None:
    rose = replace(loss_change(5039), before=0.228, after=1.15, direction="rose", lasted=812)
    assert sentence(replace(rose, status=status)) == (
        f"the loss has fallen again: 0.228 before, 1.15 {when}; it lasted about 812 observations; "
        "the model has adapted, or the cause has passed; explanations may have changed for good"
    )
    assert "adapted" not in sentence(replace(rose, status=status, direction="fell"))


def test_an_effect_beyond_all_importance_is_no_percentage() -> None:
    moved = replace(change("age", 7), effect_size=1.18)
    assert sentence(moved).endswith(", by more than the importance of all features together")
    assert sentence(replace(moved, effect_size=1.0)).endswith(", by 100 % of all importance")
    assert "importance" not in sentence(replace(moved, signal="trend"))


def test_a_loss_that_hardly_moved_is_told_so_that_one_sees_it() -> None:
    moved = replace(change("age", 7), loss_before=0.21041, loss_after=0.20972)
    assert sentence(moved).endswith("; the loss fell from 0.2104 to 0.2097")
    stayed = replace(moved, loss_after=0.21041)
    assert sentence(stayed).endswith("; the loss stayed at 0.21")


def test_wrong_predictions_are_named_and_come_with_the_loss() -> None:
    errors = replace(error_change(7), before_std_error=0.012, after_std_error=0.05)
    assert sentence(errors) == (
        "the share of wrong predictions rose from 0.050 ± 0.012 to 0.300 ± 0.050; the loss rose "
        "from 0.2 to 0.9"
    )
    assert in_short(errors) == "the share of wrong predictions rose from 0.05 to 0.3"
    assert sentence(replace(loss_change(7), loss_before=0.2, loss_after=0.9)) == (
        "the loss rose from 0.2 to 0.9"
    )


def test_in_short_too() -> None:
    assert in_short(change("age", 7, before=0.21041, after=0.20972)) == (
        "iPFI of age fell from 0.2104 to 0.2097"
    )
    assert in_short(change("age", 7, before=0.5, after=0.5)) == "iPFI of age stayed at 0.5"


def test_the_period_that_comes_back_is_named() -> None:
    back = replace(change("age", 20_000), returns_to=Period(12_000, 18_000))
    ending = "; the features have the same shares as between seq 12,000 and 18,000"
    assert sentence(back).endswith(ending)
