"""The partition of a key, as Kafka's Java clients choose it."""

from functools import lru_cache

_MASK = 0xFFFFFFFF

_M = 0x5BD1E995


@lru_cache(maxsize=10_000)
def key_hash(key: bytes) -> int:
    """Return the hash of a key: murmur2 (Appleby, 2008), without its sign bit.

    Its remainder by the number of partitions is the key's partition.

    Examples
    --------
    >>> key_hash(b"21"), key_hash(b"foobar"), key_hash(b"")
    (1173551340, 1357151166, 275646681)
    """
    h = (0x9747B28C ^ len(key)) & _MASK
    whole = len(key) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return (h ^ h >> 15) & 0x7FFFFFFF
