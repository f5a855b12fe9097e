"""Importances on a common scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.explain import normalized
from tests.kit.support import NUMBERS, PROPERTY

VALUES = st.dictionaries(st.sampled_from("abcde"), NUMBERS, min_size=1)


@PROPERTY
@given(VALUES)
def test_shares_add_up_to_one_and_the_range_is_one(values: dict[str, float]) -> None:
    total = sum(values.values())
    if abs(total) > 1e-3:
        assert sum(normalized(values).values()) == pytest.approx(1.0, abs=1e-8 / abs(total))
    else:
        assert total or set(normalized(values).values()) == {0.0}
    scaled = normalized(values, by="range").values()
    if max(values.values()) - min(values.values()) > 1e-100:
        assert max(scaled) - min(scaled) == pytest.approx(1.0, abs=1e-9)
    else:
        assert max(values.values()) > min(values.values()) or set(scaled) == {0.0}


@PROPERTY
@given(VALUES)
def test_the_range_keeps_signs_and_order(values: dict[str, float]) -> None:
    scaled = normalized(values, by="range")
    for feature, value in scaled.items():
        assert value == 0.0 or (value > 0.0) == (values[feature] > 0.0)
    if any(scaled.values()):
        order = sorted(values, key=values.__getitem__)
        assert [scaled[f] for f in order] == sorted(scaled.values())


def test_if_negative_importances_prevail_shares_turn_their_signs() -> None:
    assert normalized({"a": 1.0, "b": -3.0}) == {"a": -0.5, "b": 1.5}


def test_what_cannot_be_normalized_is_told() -> None:
    with pytest.raises(ValueError, match="by is 'delta', but must be one of sum, range"):
        normalized({"a": 1.0}, by="delta")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="values is empty"):
        normalized({})
