"""The verifier notices every way in which what was published can differ from the reference."""

import pytest

from tests.kit.comparison import compare
from tests.kit.kafka_pipeline import Published


def records(*seqs: int) -> Published:
    return {("predictions", "s", seq): {f"record {seq}".encode()} for seq in seqs}


RIGHT = records(0, 1, 2)

FIRST = ("predictions", "s", 1)

GAP = ("changes", "s", "gap", None, None, 2)


def test_what_equals_the_reference_is_no_problem() -> None:
    result = compare(records(0, 1, 2), RIGHT)
    assert result.problems() == []
    assert not any(result.numbers().values())


@pytest.mark.parametrize(
    ("published", "kind", "key", "shown"),
    [
        (records(0, 2), "missing", FIRST, "record 1"),
        ({**RIGHT, FIRST: {b"wrong"}}, "different", FIRST, "wrong"),
        ({**RIGHT, FIRST: {b"record 1", b"wrong"}}, "different", FIRST, "wrong"),
        ({**RIGHT, GAP: {b"a gap"}}, "unexpected", GAP, "a gap"),
        (records(0, 2, 1), "disordered", FIRST, ""),
    ],
)
def test_every_difference_is_noticed(
    published: Published, kind: str, key: tuple[object, ...], shown: str
) -> None:
    result = compare(published, RIGHT)
    assert getattr(result, kind) == [key]
    assert result.problems() == [f"1 {kind}"]
    assert shown in " ".join(result.examples)


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
    assert compare(published, published).problems() == []
