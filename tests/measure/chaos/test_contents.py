"""A kind of record that does not occur is noticed, if the stream is long enough for it."""

from typing import Any

import orjson
import pytest

from tests.kit.kafka_pipeline import Published
from tests.measure.chaos.contents import EXPECTED_AFTER, count_contents, without_contents

CHANGE = {"kind": "drift", "cause": None, "region": None}

EXPLANATION = {"method": "ipfi", "contrasts": None}

LONG = max(EXPECTED_AFTER.values())


@pytest.mark.parametrize(
    ("topic", "fields", "name"),
    [
        ("reasons", {}, "reasons"),
        ("explanations", {**EXPLANATION, "method": "ishap"}, "explanations by iSHAP"),
        ("explanations", {**EXPLANATION, "method": "interaction"}, "explanations by interaction"),
        ("explanations", {**EXPLANATION, "contrasts": [{}]}, "explanations with contrasts"),
        ("changes", {**CHANGE, "kind": "input"}, "changes of inputs"),
        ("changes", {**CHANGE, "kind": "output"}, "changes of predictions"),
        ("changes", {**CHANGE, "cause": {"kind": "data"}}, "causes"),
        ("changes", {**CHANGE, "region": {"share": 1.0}}, "regions"),
    ],
)
def test_each_kind_is_counted_and_the_others_are_problems(
    topic: str, fields: dict[str, Any], name: str
) -> None:
    other = {("predictions", "s", 1): {b"{}"}, ("changes", "s", 2): {orjson.dumps(CHANGE)}}
    expected: Published = {**other, (topic, "s", 3): {orjson.dumps(fields)}}
    counts = count_contents(expected)
    assert counts == {**dict.fromkeys(EXPECTED_AFTER, 0), name: 1}
    absent = [each for each in EXPECTED_AFTER if each != name]
    assert without_contents(counts, LONG) == [
        f"no {each} in 10,000 records of a stream" for each in absent
    ]


def test_a_short_stream_need_not_have_them() -> None:
    counts = count_contents({})
    assert without_contents(counts, min(EXPECTED_AFTER.values()) - 1) == []
