"""Records that no stage can use, and small batches that unpack to hundreds of megabytes."""

import random
from collections.abc import Callable

from tests.kit.batches import CODECS, GZIP, LZ4, NONE, Batch, Header, batch, record

BOMB_BYTES = 300 * 1024 * 1024
"""Size of a bomb when it is unpacked; packed it has at most 0.3 MB. The verifier's own client
unpacks it too."""

LONGEST = 2_000
"""Most random bytes of a key, a value or a header."""

BAD_NAMES = (b"\xff\xfe", b"\xed\xa0\x80", b"", b"\x00", "ключ".encode("utf-16"))
"""Names of headers; most are not UTF-8."""

OWN_NAMES = (b"fluxplain-origin", b"fluxplain-writer", b"fluxplain-origin-timestamp")
"""Headers of the pipeline's own, which anybody can forge."""

Make = Callable[[random.Random], bytes]


def poison(rng: random.Random, *, keyed: bool = False) -> Batch:
    """Return a batch with one record that is no observation, label or evaluation.

    Parameters
    ----------
    rng
        Says which.
    keyed
        Whether it must have a key: brokers refuse records without one for compacted topics.

    Examples
    --------
    >>> poison(random.Random(1)) == poison(random.Random(1)) != poison(random.Random(2))
    True
    """
    value = rng.choice((None, b"", b"{", b"[]", b'{"x": 1}', _random(rng), _random(rng)))
    key = rng.choice((*(() if keyed else (None,)), b"", b"key", _random(rng)))
    headers = [_header(rng) for _ in range(rng.randrange(4))]
    packed = record(0, value, key=key, headers=headers)
    return batch([packed], rng.choice([NONE, *CODECS.values()]))


def bomb(rng: random.Random) -> Batch:
    """Return a small batch with one record, under a key, of many zeros."""
    codec = rng.choice((GZIP, LZ4))
    if codec not in _BOMBS:
        size = BOMB_BYTES if codec == GZIP else BOMB_BYTES // 2  # brokers take 1 MB at most
        packed = record(0, bytes(size), key=b"bomb")
        _BOMBS[codec] = batch([packed], codec)  # made once: it takes a while
    return _BOMBS[codec]


_BOMBS: dict[int, Batch] = {}


def _random(rng: random.Random) -> bytes:
    # not by chance what a stage can use
    return b"\xff" + rng.randbytes(rng.randrange(LONGEST))


def _header(rng: random.Random) -> Header:
    name = rng.choice((*BAD_NAMES, *OWN_NAMES, _random(rng)))
    return name, rng.choice((None, b"", _random(rng)))
