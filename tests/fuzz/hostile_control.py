"""Control records that no pipeline can use, and announcements that are withdrawn.

For settings with ``control.topic`` and :data:`tests.kit.support.AGRAWAL_FEATURES`. What is sent to
``control`` has no influence on the results of the observations between, but for their offsets.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import Any

import orjson

from tests.fuzz.hostile import Kind, different

PATHS = [
    *("../../x", "../" * 21 + "x", "/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ"),
    *("..", ".", "~/.bashrc", "file:///etc/passwd", "\\\\host\\share", "C:\\x", "$HOME", "`id`"),
    *("%2e%2e%2fx", "..\u2215x", "\u202e../x", "x\x00.pickle", "*", "model.pickle"),
]

NO_DIGITS = ["", "٣" * 64, "０" * 64, "g" * 64, "²" * 64, " " * 64, "\x00" * 64, "a" * 63, "a" * 65]
"""What some languages count as digits; or not 64 of them."""

HUGE = ["1" + "0" * 400, "-1e308", "1e999", "9223372036854775808", "-9223372036854775809", "10001"]

NO_OBJECT = [b"", b"null", b"[]", b'"every"', b"3", b"{", b"\x00", b"\xff\xfe", b'{"every":}']

WRONG: list[Any] = [None, True, [], {}, 1.5, -1, 0, "", "two", ["v2"], {"v2": 1}, [[[]]]]

NAMES = ["", "v" * 201, "v" * 100_000, "v\n2026 CRITICAL forged", "v\x1b[2J", "v\x00", "\u202ev"]
"""No names of models: empty, too long, or with characters that a log should not show."""


def hostile_control(n: int, seed: int = 0) -> Iterator[bytes]:
    """Return ``n`` different values for ``control``, each exactly one dead letter.

    Examples
    --------
    >>> values = list(hostile_control(1000, seed=3))
    >>> len(set(values)), list(hostile_control(1000, seed=3)) == values
    (1000, True)
    """
    yield from different(KINDS, n, seed)


def withdrawn(n: int) -> Iterator[tuple[bytes, bytes]]:
    """Return announcements of models that are nowhere, each with its withdrawal.

    Send the withdrawal anywhere behind its announcement, in the same partition: until then the
    stream waits. Each pair is one change of the kind ``"model"``, and no dead letter.

    Examples
    --------
    >>> [(announced, withdrawal)] = withdrawn(1)
    >>> withdrawal
    b'{"withdraw":"absent 0"}'
    """
    for i in range(n):
        version = f"absent {i}"
        sha256 = hashlib.sha256(b"%d" % i).hexdigest()
        announced = {"model": {"version": version, "sha256": sha256}}
        yield orjson.dumps(announced), orjson.dumps({"withdraw": version})


def _name(rng: random.Random) -> str:
    return f"v{rng.getrandbits(40)}"


def _digest(rng: random.Random) -> str:
    return rng.randbytes(32).hex()


def _announced(rng: random.Random, **fields: Any) -> bytes:
    model = {"version": _name(rng), "sha256": _digest(rng), **fields}
    return orjson.dumps({"model": model})


def _path(rng: random.Random) -> bytes:
    path = rng.choice(PATHS)
    around = rng.choice(["", _digest(rng), _digest(rng) + "/", _digest(rng) + "\n"])
    return _announced(rng, sha256=rng.choice([path + around, around + path + "/"]))


def _no_digest(rng: random.Random) -> bytes:
    digest = _digest(rng)
    odd = rng.choice(NO_DIGITS)
    # some digests are upper case already, if they have no letters
    upper = "A" + digest[1:].upper()
    others = [odd, upper, digest + "\n", " " + digest, digest[:-1], "0x" + digest, digest * 900]
    return _announced(rng, sha256=rng.choice(others))


def _no_name(rng: random.Random) -> bytes:
    name = rng.choice(NAMES)
    if rng.random() < 0.5:
        return _announced(rng, version=name)
    return orjson.dumps({"withdraw": name, "nonce": rng.getrandbits(40)})


def _wrong_type(rng: random.Random) -> bytes:
    wrong = rng.choice([value for value in WRONG if not isinstance(value, str)])
    if rng.random() < 0.4:
        return _announced(rng, **{rng.choice(["version", "sha256"]): wrong})
    name = rng.choice(["every", "model", "withdraw"])
    return orjson.dumps({name: wrong, "nonce": rng.getrandbits(40)})


def _both(rng: random.Random) -> bytes:
    """Announce and withdraw at once."""
    announced = orjson.loads(_announced(rng))
    return orjson.dumps({**announced, "withdraw": rng.choice([_name(rng), "", "v1"])})


def _nothing(rng: random.Random) -> bytes:
    fields = ["exec", "file", "url", "pickle", "__reduce__", "Every", "models", "x"]
    return orjson.dumps({rng.choice(fields): _name(rng), "every": None, "model": None})


def _deep(rng: random.Random) -> bytes:
    depth = int(2000 ** rng.random())
    name = rng.choice(["every", "model", "withdraw"])
    return b'{"%s":%s1%s}' % (name.encode(), b"[" * depth, b"]" * depth)


KINDS: dict[str, Kind] = {
    "path": _path,
    "no digest": _no_digest,
    "no name": _no_name,
    "wrong type": _wrong_type,
    "huge number": lambda rng: (
        f'{{"every":{rng.choice(HUGE)},"nonce":{rng.getrandbits(40)}}}'.encode()
    ),
    "both": _both,
    "unknown withdrawal": lambda rng: orjson.dumps({"withdraw": _name(rng)}),
    "nothing": _nothing,
    "no object": lambda rng: rng.choice(NO_OBJECT) + b" " * rng.randrange(50),
    "deep": _deep,
}
"""Name → makes one value of the kind."""
