"""What a consumer can see is noticed when it is wrong, and only then."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from tests.kit.kafka_pipeline import Published, identity
from tests.measure.chaos.outside import Outside, look
from tests.measure.chaos.poison import Place

READ = {"features", "labels", "observations", "evaluations", "explanations"}

FED = {
    ("features", 0): [b'{"id": "a"}', b"{", b'{"id": "b"}'],
    ("labels", 0): [b'{"id": "a", "y": 1}'],
}


def prediction(seq: int, id_: str, y: int | None) -> dict[str, Any]:
    return {"stream": "t.observations-0", "seq": seq, "id": id_, "y": y, "incarnation": "1"}


def letter(topic: str, offset: int, key: str | None = None) -> dict[str, Any]:
    place = {"topic": f"t.{topic}", "partition": 0, "offset": offset, "key": key}
    return {**place, "incarnation": "1"}


GOOD = [
    ("predictions", prediction(0, "a", None)),
    ("dead-letters", letter("features", 1)),
    ("predictions", prediction(2, "b", None)),
    ("predictions", prediction(3, "a", 1)),
]


def published(records: Sequence[tuple[str, dict[str, Any]]]) -> Published:
    found: Published = {}
    for topic, fields in records:
        value = orjson.dumps(fields)
        found.setdefault(identity(topic, value), set()).add(value)
    return found


def seen(records: Sequence[tuple[str, dict[str, Any]]], poison: Sequence[Place] = ()) -> Outside:
    return look(published(records), FED, poison, prefix="t.", read=READ, joined=True)


def test_a_result_for_each_message_is_no_problem() -> None:
    assert seen(GOOD).problems() == []


@pytest.mark.parametrize(
    ("left_out", "place"),
    [(0, None), (1, ("features", 1)), (2, ("features", 2)), (3, ("labels", 0))],
)
def test_what_has_neither_prediction_nor_dead_letter_is_silent(
    left_out: int, place: tuple[str, int] | None
) -> None:
    result = seen([each for i, each in enumerate(GOOD) if i != left_out])
    # of two predictions of an observation one is enough: the other one is its label's
    expected = [(place[0], 0, place[1])] if place else []
    assert result.silent == expected
    assert len(result.problems()) == len(expected)


def test_a_label_that_was_taken_for_another_one_is_silent() -> None:
    assert seen([*GOOD[:3], ("predictions", prediction(3, "a", 0))]).silent == [("labels", 0, 0)]


def test_an_identity_with_two_contents_is_noticed() -> None:
    result = seen([*GOOD, ("predictions", prediction(2, "b", 1))])
    assert result.contradicting == [("predictions", "t.observations-0", "1", 2)]


@pytest.mark.parametrize(
    ("letters", "count"),
    [([], 0), ([letter("evaluations", 7)], 1), ([letter("evaluations", 7, k) for k in "ab"], 2)],
)
def test_poison_has_exactly_one_dead_letter(letters: list[dict[str, Any]], count: int) -> None:
    place = ("evaluations", 0, 7)
    result = seen([*GOOD, *(("dead-letters", each) for each in letters)], [place])
    assert result.not_one_letter == ({} if count == 1 else {place: count})


def test_poison_where_nobody_reads_needs_no_dead_letter() -> None:
    assert seen(GOOD, [("predictions", 0, 9)]).problems() == []


def test_without_joined_topics_the_offset_decides() -> None:
    fed = {("features", 0): [b"anything", b"{"]}
    records = [("predictions", {**prediction(0, "a", 1), "stream": "t.features-0"})]
    options: dict[str, Any] = {"prefix": "t.", "read": {"features"}, "joined": False}
    assert look(published(records), fed, (), **options).silent == [("features", 0, 1)]
