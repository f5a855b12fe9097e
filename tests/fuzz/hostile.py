"""Observations that no pipeline can use, of every kind a producer's mistake or malice can give.

Each certainly is one dead letter for settings with :data:`tests.kit.support.AGRAWAL_FEATURES` and
integer labels, whatever the model.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from tests.kit.support import AGRAWAL_FEATURES, AGRAWAL_NUMERIC, agrawal

Kind = Callable[[random.Random], bytes]

Places = Sequence[tuple[str, ...]]
"""Paths to values of an observation."""

CATEGORICAL = tuple(name for name in AGRAWAL_FEATURES if name not in AGRAWAL_NUMERIC)

NUMBERS: Places = [("x", name) for name in AGRAWAL_NUMERIC]
CATEGORIES: Places = [("x", name) for name in CATEGORICAL]
NAMES: Places = [("id",), ("ts",)]
LABEL: Places = [("y",)]
NOTE: Places = [("x", "note")]

NESTED = [[], {}, [1], {"value": 1}, [[]], [None]]
RAW_NESTED = [orjson.dumps(value) for value in NESTED]

NO_CATEGORY = [b"1.5", b"-0.0", b"1e300", b"%d" % 2**64, b"%d" % (-(2**63) - 1), b"%d" % 10**30]
"""JSON knows no category that is a fraction; integers beyond 64 bits are read as fractions too."""

NO_NUMBER = [
    *(b"NaN", b"nan", b"Infinity", b"-Infinity", b"inf", b"1e999", b"-1e999", b"1" + b"0" * 400),
    *(b"01", b"+1", b".5", b"1.", b"0x10", b"1_000", b"1e", b"--1", b"1,5", "１".encode()),
]
"""What some languages write for numbers and JSON does not know; or more than a float can hold."""

NO_TEXT = [
    *(rb"\ud800", rb"\udc00\ud800", rb"\uD83D", rb"\u12", rb"\x41", rb"\q", b"\\"),
    *(b"\x00", b"\x1f", b"\n", b"\x80", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b"\xf5\x80\x80\x80", b"\xe2\x82", b"a\xfeb"),
]
"""Lone surrogates, broken escapes, raw control characters, and bytes that are not UTF-8."""

SCALARS = [b"null", b"true", b"0", b"-1.5e3", b'"x"', b'""', b"[]", b"{}", b"[{}]", b'{"y":1}']

WHITESPACE = [b"", b" ", b"\n", b"\t\r\n ", b"\x00", b"\x00\x00\x00\x00"]


@cache
def usable() -> tuple[dict[str, Any], ...]:
    """Return observations that are as configured."""
    return tuple({"x": dict(x), "y": y} for x, y in agrawal(60, seed=7))


def hostile(n: int, seed: int = 0) -> Iterator[bytes]:
    """Return ``n`` different values for ``features``, of all kinds; the same for the same seed.

    Examples
    --------
    >>> values = list(hostile(1000, seed=3))
    >>> len(set(values)), list(hostile(1000, seed=3)) == values
    (1000, True)
    """
    yield from different(KINDS, n, seed)


def different(kinds: Mapping[str, Kind], n: int, seed: int) -> Iterator[bytes]:
    """Yield ``n`` different values, of all kinds."""
    rng = random.Random(seed)
    makers = list(kinds.values())
    given: set[bytes] = set()
    while len(given) < n:
        value = rng.choice(makers)(rng)
        if value not in given:  # some kinds have few members
            given.add(value)
            yield value


def _observation(rng: random.Random) -> dict[str, Any]:
    """Return a usable observation of its own."""
    known = rng.choice(usable())
    x = {**known["x"], "salary": rng.uniform(2e4, 1.5e5)}
    return {"x": x, "y": known["y"], "id": rng.getrandbits(40)}


def _text(rng: random.Random) -> bytes:
    return orjson.dumps(_observation(rng))


def _with_raw(observation: dict[str, Any], path: tuple[str, ...], raw: bytes) -> bytes:
    """Return the observation with these bytes in place of a value."""
    holder = observation
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = "@raw@"
    return orjson.dumps(observation).replace(b'"@raw@"', raw)


def _replaced(places: Places, *raws: bytes) -> Kind:
    """Return the kind in which one of these values is one of these bytes."""
    return lambda rng: _with_raw(_observation(rng), rng.choice(places), rng.choice(raws))


def _random_bytes(rng: random.Random) -> bytes:
    # no JSON begins with a byte above 127
    return bytes([rng.randrange(128, 256)]) + rng.randbytes(rng.randrange(300))


def _random_text(rng: random.Random) -> bytes:
    text = "".join(chr(rng.randrange(32, 0xD800)) for _ in range(rng.randrange(80)))
    return b"~" + text.encode()


def _truncated(rng: random.Random) -> bytes:
    text = _text(rng)
    return text[: rng.randrange(len(text))]


def _bit_flipped(rng: random.Random) -> bytes:
    """Flip a bit of what holds the object together; in a digit it would be another number."""
    text = bytearray(_text(rng))
    at = rng.choice([i for i, byte in enumerate(text) if byte in b"{}:,"])
    text[at] ^= 1 << rng.randrange(8)
    return bytes(text)


def _spliced(rng: random.Random) -> bytes:
    """Put one message into another, or behind it."""
    outer, inner = _text(rng), _text(rng)
    at = rng.randrange(len(outer) + 1)
    return outer[:at] + inner + outer[at:]


def _wrong_shape(rng: random.Random) -> bytes:
    observation = _observation(rng)
    shapes: list[Any] = [*NESTED, list(observation), list(observation["x"]), [observation]]
    if rng.random() < 0.3:
        return orjson.dumps([observation, *rng.sample(shapes[:-1], rng.randrange(4))])
    observation["x"] = rng.choice([None, 1, "x", True, [], list(observation["x"].values()), {}])
    return orjson.dumps(observation)


def _scalar(rng: random.Random) -> bytes:
    pad = [rng.choice([b"", b" ", b"\n", b"\t"]) for _ in range(4)]
    return b"".join([pad[0], pad[1], rng.choice(SCALARS), pad[2], pad[3]])


def _empty(rng: random.Random) -> bytes:
    return rng.choice(WHITESPACE) * rng.randrange(1, 40)


def _deep(rng: random.Random) -> bytes:
    """Nest 1 to 2,000 deep: the parser reads 1,024."""
    depth = int(2000 ** rng.random())
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    nested = opening * depth + rng.choice([b"1", b"null", b'"x"']) + closing * depth
    where = rng.choice(["all", "feature", "other", "y", "id", "ts"])
    if where == "all":
        return nested
    paths = {"feature": ("x", rng.choice(list(AGRAWAL_FEATURES))), "other": ("x", "note")}
    return _with_raw(_observation(rng), paths.get(where, (where,)), nested)


def _missing(rng: random.Random) -> bytes:
    observation = _observation(rng)
    if rng.random() < 0.1:
        del observation["x"], observation["id"]  # with an id it would be a label
        return orjson.dumps(observation)
    for name in rng.sample(list(AGRAWAL_FEATURES), rng.randrange(1, len(AGRAWAL_FEATURES) + 1)):
        del observation["x"][name]
    return orjson.dumps(observation)


def _misnamed(rng: random.Random) -> bytes:
    observation = _observation(rng)
    name = rng.choice(list(AGRAWAL_FEATURES))
    wrong = rng.choice([name.upper(), name + " ", name + "\x00", name[::-1], ""])
    observation["x"] = {wrong if n == name else n: v for n, v in observation["x"].items()}
    return orjson.dumps(observation)


def _too_long(rng: random.Random) -> bytes:
    observation = _observation(rng)
    text = rng.choice("aé漢😀\x00\n") * rng.randrange(1001, 4000)
    if rng.random() < 0.5:
        observation[rng.choice(["id", "ts"])] = text
    else:
        observation["x"][rng.choice(CATEGORICAL)] = text
    return orjson.dumps(observation)


def _twice(rng: random.Random) -> bytes:
    """Give a key twice: the last one counts, and it is the wrong one."""
    text = _text(rng)
    name = rng.choice(list(AGRAWAL_FEATURES)).encode()
    return rng.choice(
        [
            text[:-1] + b',"x":null}',
            text[:-1] + b',"x":{}}',
            text[:-1] + b',"y":[]}',
            text.replace(b"},", b',"' + name + b'":[]},'),
        ]
    )


def _other_encoding(rng: random.Random) -> bytes:
    text = _text(rng).decode()
    return text.encode(rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"]))


def _other_notation(rng: random.Random) -> bytes:
    observation = _observation(rng)
    text = orjson.dumps(observation)
    return rng.choice(
        [
            repr(observation).encode(),
            b"// note\n" + text,
            text[:-1] + b",}",
            text + b";",
            text + b"\n" + text,
            b"data=" + text,
            text.replace(b":", b"=").replace(b"{", b"("),
            b"\x00\x00\x00\x00\x07" + text,  # a schema registry's frame
            b"<x>" + str(observation["id"]).encode() + b"</x>",
            ",".join(str(value) for value in observation["x"].values()).encode(),
        ]
    )


KINDS: dict[str, Kind] = {
    **{
        kind.__name__.removeprefix("_").replace("_", " "): kind
        for kind in (
            *(_random_bytes, _random_text, _truncated, _bit_flipped, _spliced, _wrong_shape),
            *(_scalar, _empty, _deep, _missing, _misnamed, _too_long, _twice),
            *(_other_encoding, _other_notation),
        )
    },
    "broken text": _replaced(
        [*CATEGORIES, *NAMES, ("note",), *NOTE],
        *(b'"' + before + bad + b'"' for bad in NO_TEXT for before in (b"", b"ok")),
    ),
    "broken number": _replaced([*NUMBERS, *LABEL, ("ts",), *NOTE], *NO_NUMBER),
    "wrong number": _replaced(
        NUMBERS,
        *(b'"1"', b'""', b'"NaN"', b'"Infinity"', b'"1e999"', b"true", b"false", b"null"),
        *RAW_NESTED,
    ),
    "wrong category": _replaced(CATEGORIES, b"null", *NO_CATEGORY, *RAW_NESTED),
    "wrong label": _replaced(LABEL, b"true", b'"1"', b'""', b"1.0", *NO_CATEGORY, *RAW_NESTED),
    "wrong name": _replaced(NAMES, *RAW_NESTED),
}
"""Name → makes one value of the kind."""
