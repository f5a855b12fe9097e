"""How large a change is, compared with all that a model relies on."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.follow_up import effect_of
from fluxplain.schemas.numbers import MAX_NUMBER
from tests.kit.records import change
from tests.kit.support import PROPERTY

NUMBERS = st.floats(-MAX_NUMBER, MAX_NUMBER)


@PROPERTY
@given(NUMBERS, NUMBERS, st.floats(0.0, MAX_NUMBER))
def test_it_is_a_share_that_order_and_sign_do_not_change(
    before: float, after: float, others: float
) -> None:
    size = effect_of(change("a", 1, before=before, after=after), others)
    assert size is not None
    assert 0.0 <= size <= 2.0
    assert size == effect_of(change("a", 1, before=after, after=before), others)
    assert size == effect_of(change("a", 1, before=-before, after=-after), others)
    if before * after >= 0.0:
        assert size <= 1.0


def test_beside_more_important_features_it_is_smaller() -> None:
    rise = change("a", 1, before=0.1, after=0.4)
    assert effect_of(rise) == pytest.approx(0.75)
    assert effect_of(rise, others=0.6) == pytest.approx(0.3)


@PROPERTY
@given(st.lists(st.floats(0.0, 2.0), min_size=2, max_size=30), st.floats(0.0, 0.9))
def test_small_steps_add_up(levels: list[float], least: float) -> None:
    """What consumers have been told is never farther from the level than the least effect."""
    gate, told, last = EffectGate(least), levels[0], None
    for seq, (before, after) in enumerate(pairwise(levels)):
        step = change("a", seq, before=before, after=after)
        passed = gate.passed(step, others=1.0)
        whole = effect_of(replace(step, before=told), others=1.0)
        assert whole is not None
        assert (passed is None) == (whole < least)
        if passed is not None:
            assert (passed.before, passed.after, passed.effect_size) == (told, after, whole)
            assert passed.previous_seq == last
            told, last = after, seq


def test_another_incarnation_begins_anew() -> None:
    gate = EffectGate(0.5)
    assert gate.passed(change("a", 1, before=1.0, after=1.2), 0.0) is None
    other = replace(change("a", 2, before=1.2, after=3.0), incarnation="2")
    passed = gate.passed(other, 0.0)
    assert passed is not None
    assert passed.before == 1.2
