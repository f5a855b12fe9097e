"""Hypothesis strategies for messages: anything at all, and good messages gone wrong."""

import copy
import json
import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from hypothesis import settings
from hypothesis import strategies as st

from tests.kit.support import PROPERTY, SLOW_PROPERTY

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Examples of each property; 0 for those of every test run."""

FUZZ = (
    settings(PROPERTY, max_examples=EXAMPLES, derandomize=False, print_blob=True)
    if EXAMPLES
    else PROPERTY
)

SLOW_FUZZ = settings(FUZZ, max_examples=EXAMPLES // 5 or SLOW_PROPERTY.max_examples)

EXTREME_NUMBERS: list[Any] = [
    *(0, -1, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1),
    *(10**30, 10**310, -0.0, 5e-324, 1e-300, 1e15, 1e100, 1e154, -1e154, 1.3e154, 1e300),
    *(1.7e308, -1.7e308, float("nan"), float("inf"), float("-inf")),
]
"""JSON of Python's own making: with integers of any size, NaN and Infinity."""

STREAMS = [
    *("fluxplain.features-0", "fluxplain.features-1", "fluxplain.features-00", "features-0"),
    *("fluxplain.features", "fluxplain.features-", "fluxplain.features--1", "-0", "-", ""),
    *("fluxplain.features-1e3", "fluxplain.features-٣", "fluxplain.features-9999999999"),
    *("fluxplain.features-999999999", "f" * 249 + "-0", "f" * 250 + "-0", "\x00-0", "a/../b-0"),
]

EXTREME_TEXTS = [
    *("", "nan", "inf", "1", "1e999", "99999999999999999999999", "null", "True", "\x00", "\ud800"),
    *("\udfff\ud800", "é", "😀", '"', "\\", "\u2028", "a" * 1_000, "漢" * 1_001, "\x00" * 5_000),
    *("ipfi", "isage", "ipdp", "shap", "salary", "a", "no such feature", *STREAMS),
]

SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([*EXTREME_NUMBERS, *EXTREME_TEXTS])
)

ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


def dumps(value: Any) -> bytes:
    """Return JSON as lenient writers write it: NaN, integers of any size, lone surrogates."""
    return json.dumps(value).encode()


@st.composite
def nested(draw: st.DrawFn) -> bytes:
    """JSON that is 1 to 2,000 deep, alone or as a field."""
    depth = draw(st.integers(1, 2_000) | st.sampled_from([254, 255, 256, 1_023, 1_024, 1_025]))
    opening, closing = draw(st.sampled_from([(b"[", b"]"), (b'{"x":', b"}")]))
    deep = opening * depth + draw(st.sampled_from([b"", b"1", b"{}"])) + closing * depth
    name = draw(st.none() | st.sampled_from([b"x", b"y", b"seqs", b"ipfi", b"classes", b"effect"]))
    return deep if name is None else b'{"' + name + b'":' + deep + b"}"


@st.composite
def altered(draw: st.DrawFn, records: Sequence[dict[str, Any]]) -> bytes:
    """A good message of which up to three fields are replaced by anything."""
    fields = copy.deepcopy(draw(st.sampled_from(records)))
    for _ in range(draw(st.integers(1, 3))):
        _alter(draw, fields)
    return dumps(fields)


def _alter(draw: st.DrawFn, fields: dict[str, Any]) -> None:
    holder: Any = fields
    while True:
        if not holder:
            return
        keys = sorted(holder) if isinstance(holder, dict) else range(len(holder))
        key = draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list) or draw(st.booleans()):
            break
        holder = holder[key]
    how = draw(st.sampled_from(["replace", "same kind", "delete", "repeat", "cut", "turn", "add"]))
    value = holder[key]
    if how == "delete":
        del holder[key]
    elif how == "same kind":
        holder[key] = draw(_alike(value))
    elif how == "add" and isinstance(holder, dict):
        holder[draw(st.text(max_size=5))] = draw(ANY_JSON)
    elif how == "repeat" and isinstance(value, list):
        holder[key] = value * draw(st.sampled_from([2, 3, 70]))
    elif how == "cut" and isinstance(value, list):
        holder[key] = value[: draw(st.integers(0, 2))]
    elif how == "turn" and isinstance(value, list):
        holder[key] = value[::-1]
    else:
        holder[key] = draw(ANY_JSON)


def _alike(value: Any) -> st.SearchStrategy[Any]:
    """Return what is likely to be taken for valid in the place of a value."""
    if isinstance(value, bool) or value is None:
        return st.none() | st.booleans() | st.sampled_from(EXTREME_NUMBERS)
    if isinstance(value, int | float):
        return st.sampled_from(EXTREME_NUMBERS) | st.floats() | st.integers(-5, 10**6)
    if isinstance(value, str):
        return st.sampled_from(EXTREME_TEXTS) | st.text(max_size=8)
    if isinstance(value, list):
        return st.lists(SCALARS, max_size=4) | st.lists(st.lists(SCALARS, max_size=3), max_size=3)
    return st.dictionaries(st.text(max_size=5), SCALARS, max_size=3)


CONFUSED: list[Any] = ["nan", "inf", "-1", "1e300", "9" * 30, True, 1.0, 1e30, [], [1.0], [[1e30]]]
"""What a lenient reader takes for a number, or for a list of them."""

SEEDS = st.integers(0, 2**64 - 1)


def strained(rng: random.Random, records: Sequence[dict[str, Any]]) -> bytes:
    """Return a message of the right types, with up to four values at the edge of the possible.

    It decodes, most of the time: what is made of it is what is tested. The choices are drawn by
    chance alone, from one seed an example: Hypothesis repeats itself within an example.
    """
    fields = copy.deepcopy(rng.choice(records))
    leaves = list(_leaves(fields))
    if not leaves:
        return dumps(fields)
    # a text is often one of a few words, a number may be any
    numbers = [(holder, key) for holder, key in leaves if isinstance(holder[key], int | float)]
    for _ in range(rng.randint(1, 4)):
        holder, key = rng.choice(rng.choice([leaves, numbers or leaves]))
        holder[key] = rng.choice(_edges(holder[key]) if rng.random() < 0.85 else CONFUSED)
    return dumps(fields)


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return where the numbers, texts, booleans and nulls are."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        if isinstance(item, dict | list):
            yield from _leaves(item)
        else:
            yield value, key


def _edges(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return [None, 0, 2**63 - 1, "", True]
    if isinstance(value, int):
        return [n for n in EXTREME_NUMBERS if isinstance(n, int) and -(2**63) <= n < 2**64]
    if isinstance(value, float):
        return [n for n in EXTREME_NUMBERS if isinstance(n, float) and math.isfinite(n)]
    return [text for text in EXTREME_TEXTS if "\ud800" not in text]


@st.composite
def mangled(draw: st.DrawFn, texts: Sequence[bytes], *, numbers: bool = True) -> bytes:
    """A good message whose bytes were cut, flipped, repeated or mixed with another's."""
    text = draw(st.sampled_from(texts))
    place = st.integers(0, len(text) - 1)
    ways = ["cut", "flip", "drop", "insert", "splice", "repeat", *(["number"] if numbers else [])]
    match draw(st.sampled_from(ways)):
        case "cut":
            return text[: draw(place)]
        case "flip":
            flipped = bytearray(text)
            for at in draw(st.lists(place, min_size=1, max_size=4)):
                flipped[at] ^= 1 << draw(st.integers(0, 7))
            return bytes(flipped)
        case "drop":
            at = draw(place)
            return text[:at] + text[at + draw(st.integers(1, 30)) :]
        case "insert":
            at = draw(place)
            return text[:at] + draw(st.binary(min_size=1, max_size=8)) + text[at:]
        case "splice":
            other = draw(st.sampled_from(texts))
            return text[: draw(place)] + other[draw(st.integers(0, len(other))) :]
        case "number":
            found = draw(st.sampled_from(list(re.finditer(rb"-?\d[\d.eE+-]*", text))))
            new = dumps(draw(st.sampled_from(EXTREME_NUMBERS)))
            return text[: found.start()] + new + text[found.end() :]
    at = draw(place)
    return text[:at] + text[at : at + draw(st.integers(1, 40))] * 3 + text[at:]


def anything(records: Sequence[dict[str, Any]]) -> st.SearchStrategy[bytes | None]:
    """Messages of all kinds, given good ones of a topic."""
    texts = [orjson.dumps(record) for record in records]
    return (
        altered(records)
        | altered(records)  # what is nearly right goes deepest
        | mangled(texts)
        | nested()
        | ANY_JSON.map(dumps)
        | st.binary(max_size=60)
        | st.none()
    )


KEYS = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"\xff", b"\x00" * 200])
