"""Observations as rows of numbers."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import preprocessing

from fluxplain.models import Encoder
from tests.kit.support import NUMBERS, PROPERTY, pickled

FEATURES = {"a": "numeric", "shop": "categorical", "b": "numeric", "open": "categorical"}


@given(st.lists(st.fixed_dictionaries({"a": NUMBERS, "b": NUMBERS}), min_size=1, max_size=8))
@PROPERTY
def test_numbers_are_scaled_as_by_river(rows: list[dict[str, float]]) -> None:
    encoder, scaler = (
        Encoder({"a": "numeric", "b": "numeric"}),
        preprocessing.StandardScaler(),
    )
    for x in rows:
        encoder.learn(x)
        scaler.learn_one(x)
    expected = [[scaler.transform_one(x)[feature] for feature in "ab"] for x in rows]
    assert encoder.rows(rows) == pytest.approx(np.array(expected), rel=1e-12)


def test_a_category_has_a_column_of_its_own_while_there_are_columns() -> None:
    encoder = Encoder(FEATURES, scale=False, categories=2)
    x: dict[str, Any] = {"a": 1.0, "shop": "u", "b": 2.0, "open": True}
    assert encoder.rows([x]).tolist() == [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0]], "nothing is learned yet"
    for shop in ("u", "v", "u", "w"):
        encoder.learn({**x, "shop": shop})
    rows = encoder.rows([x, {**x, "shop": "v", "open": False}, {**x, "shop": "w"}])
    assert rows[:, 2:].tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert encoder.width == rows.shape[1] == 6
    assert pickled(encoder).rows([x]).tolist() == encoder.rows([x]).tolist()


def test_its_size_does_not_grow() -> None:
    encoder, rng = Encoder(FEATURES, categories=5), random.Random(1)
    for i in range(300):
        encoder.learn({"a": rng.random(), "shop": f"shop {i}", "b": 1.0, "open": i})
    assert max(map(len, encoder._columns.values())) == 5


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        ({"a": 1.0, "shop": "u", "b": 2.0}, "lacks the feature open"),
        ({"shop": "u", "b": 2.0, "open": True}, "lacks the feature a"),
        ({"a": "old", "shop": "u", "b": 2.0, "open": True}, "feature a must be a number.*'old'"),
        ({"a": None, "shop": "u", "b": 2.0, "open": True}, "feature a must be a number.*None"),
    ],
)
def test_the_feature_that_is_wrong_is_named(x: dict[str, Any], reason: str) -> None:
    encoder = Encoder(FEATURES)
    for method in (encoder.learn, lambda wrong: encoder.rows([wrong])):
        with pytest.raises(ValueError, match=reason):
            method(x)


def test_wrong_settings_are_told() -> None:
    with pytest.raises(ValueError, match="feature a is 'number', but must be 'numeric'"):
        Encoder({"a": "number"})
    with pytest.raises(ValueError, match="categories is 0"):
        Encoder(FEATURES, categories=0)
