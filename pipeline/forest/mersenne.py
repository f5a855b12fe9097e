"""Python's random numbers in compiled loops: the same draws from the same state, in the same order.

Source: CPython, ``Modules/_randommodule.c`` and ``Lib/random.py``.
"""

import math
from random import Random

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.compiled import compiled

Words = NDArray[np.uint32]
"""State of a generator: 624 words, then the position of the next one."""

SIZE, SHIFT = 624, 397


def state_of(rng: Random) -> Words:
    """Return the state of a generator."""
    return np.array(rng.getstate()[1], dtype=np.uint32)


def put_state(rng: Random, words: Words) -> None:
    """Continue a generator where the words are."""
    version, _, pending = rng.getstate()
    rng.setstate((version, tuple(words.tolist()), pending))


@compiled
def _twist(words: Words) -> None:
    for i in range(SIZE):
        following, shifted = words[(i + 1) % SIZE], words[(i + SHIFT) % SIZE]
        mixed = (words[i] & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
        other = np.uint32(0x9908B0DF) if mixed & np.uint32(1) else np.uint32(0)
        words[i] = shifted ^ (mixed >> np.uint32(1)) ^ other
    words[SIZE] = 0


@compiled
def _word(words: Words) -> np.uint32:
    if words[SIZE] >= SIZE:
        _twist(words)
    y = words[words[SIZE]]
    words[SIZE] += np.uint32(1)
    y ^= y >> np.uint32(11)
    y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    return np.uint32(y ^ (y >> np.uint32(18)))


@compiled
def uniform(words: Words) -> float:
    """Return what ``Random.random`` returns."""
    high, low = _word(words) >> np.uint32(5), _word(words) >> np.uint32(6)
    return (float(high) * 67108864.0 + float(low)) * (1.0 / 9007199254740992.0)


@compiled
def poisson(words: Words, limit: float) -> int:
    """Return what River's ``poisson`` draws; ``limit`` is exp(−rate)."""
    k, p = 0, 1.0
    while p > limit:
        k += 1
        p *= uniform(words)
    return k - 1


@compiled
def below(words: Words, n: int) -> int:
    """Return what ``Random._randbelow`` draws, 0 ≤ it < n."""
    bits, rest = 0, n
    while rest:
        bits += 1
        rest >>= 1
    shift = np.uint32(32 - bits)
    drawn = int(_word(words) >> shift)
    while drawn >= n:
        drawn = int(_word(words) >> shift)
    return drawn


@compiled
def sample(words: Words, n: int, k: int, drawn: NDArray[np.int64]) -> None:
    """Fill ``drawn`` with the positions that ``Random.sample`` takes from a list of n."""
    small = 21
    if k > 5:
        small += 4 ** math.ceil(math.log(k * 3.0) / math.log(4.0))
    if n <= small:
        pool = np.arange(n)
        for i in range(k):
            j = below(words, n - i)
            drawn[i] = pool[j]
            pool[j] = pool[n - i - 1]
        return
    taken = np.zeros(n, np.bool_)
    for i in range(k):
        j = below(words, n)
        while taken[j]:
            j = below(words, n)
        taken[j] = True
        drawn[i] = j
