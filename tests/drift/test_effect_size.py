"""How large a change is, compared with all that a model relies on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.effect_size import effect_of
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
