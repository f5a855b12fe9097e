"""The verifier notices every way in which what was published can differ from the reference."""

import pytest

from tests.kit.kafka_pipeline import Published
from tests.measure.chaos.verifier import Comparison, compare


def records(*seqs: int) -> Published:
    return {("predictions", "s", seq): {f"record {seq}".encode()} for seq in seqs}


def verify(published: Published, messages: int | None = None) -> Comparison:
    count = sum(map(len, published.values())) if messages is None else messages
    return compare(published, records(0, 1, 2), count)


def test_what_equals_the_reference_is_no_problem() -> None:
    result = verify(records(0, 1, 2))
    assert result.problems() == []
    assert result.duplicated == 0
    assert result.expected == result.published == 3


def test_a_repeated_record_is_counted_and_no_problem() -> None:
    result = verify(records(0, 1, 2), messages=5)
    assert result.duplicated == 2
    assert result.problems() == []


def test_a_missing_record_is_noticed() -> None:
    result = verify(records(0, 2))
    assert result.missing == [("predictions", "s", 1)]
    assert result.problems() == ["1 missing"]
    assert "record 1" in result.examples[0]


@pytest.mark.parametrize("versions", [{b"wrong"}, {b"record 1", b"wrong"}])
def test_a_different_record_is_noticed_also_beside_the_right_one(versions: set[bytes]) -> None:
    result = verify({**records(0, 1, 2), ("predictions", "s", 1): versions})
    assert result.different == [("predictions", "s", 1)]
    assert result.problems() == ["1 different"]
    assert "wrong" in result.examples[0]
    assert result.duplicated == 0


def test_a_record_that_the_reference_lacks_is_noticed() -> None:
    gap = ("changes", "s", "gap", None, None, 2)
    result = verify({**records(0, 1, 2), gap: {b"a gap"}})
    assert result.unexpected == [gap]
    assert result.problems() == ["1 unexpected"]


def test_a_record_behind_a_later_one_is_noticed() -> None:
    result = verify(records(0, 2, 1))
    assert result.disordered == [("predictions", "s", 1)]
    assert result.problems() == ["1 disordered"]


def test_streams_features_and_methods_have_an_order_of_their_own() -> None:
    keys = [
        ("explanations", "s", "age", "ipfi", 5),
        ("explanations", "s", "age", "ipdp", 4),
        ("explanations", "s", "salary", "ipfi", 3),
        ("explanations", "t", "age", "ipfi", 2),
        ("dead-letters", "features", 0, 9, None),
        ("dead-letters", "features", 0, 8, None),
    ]
    published: Published = {key: {b"{}"} for key in keys}
    assert compare(published, published, len(keys)).problems() == []
