"""Counts what the expected records hold: a comparison without any of it would show nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tests.kit.comparison import Records

EXPECTED_AFTER: Mapping[str, int] = {
    "reasons": 1_000,
    "explanations by iSHAP": 1_000,
    "explanations by interaction": 1_000,
    "explanations with contrasts": 5_000,
    "changes of inputs": 10_000,
    "changes of predictions": 10_000,
    "causes": 10_000,
    "regions": 10_000,
}
"""What is counted → the length of a stream, in records, that has some. A model is compared with one
that is 1,000 to 2,000 records older, and a change gets its cause and region 1,000 observations
after it was noticed."""

_METHODS = {"ishap": "explanations by iSHAP", "interaction": "explanations by interaction"}

_KINDS = {"input": "changes of inputs", "output": "changes of predictions"}


def count_contents(expected: Records) -> dict[str, int]:
    """Return how many of the expected records have what; 0 for what none has."""
    found = Counter(
        name
        for key, values in expected.items()
        for value in values
        for name in _contents(key[0], orjson.loads(value))
    )
    return {name: found[name] for name in EXPECTED_AFTER}


def without_contents(counts: Mapping[str, int], longest: int) -> list[str]:
    """Return a problem for each count of 0, if the ``longest`` stream had to have some."""
    return [
        f"no {name} in {longest:,} records of a stream"
        for name, least in EXPECTED_AFTER.items()
        if longest >= least and not counts[name]
    ]


def _contents(topic: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if topic == "reasons":
        yield "reasons"
    elif topic == "explanations":
        if fields["method"] in _METHODS:
            yield _METHODS[fields["method"]]
        if fields["contrasts"]:
            yield "explanations with contrasts"
    elif topic == "changes":
        if fields["kind"] in _KINDS:
            yield _KINDS[fields["kind"]]
        if fields["cause"]:
            yield "causes"
        if fields["region"]:
            yield "regions"
