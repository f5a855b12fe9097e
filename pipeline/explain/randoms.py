"""Random numbers as Python's generator draws them, with less overhead."""

import random


def below(n: int, rng: random.Random) -> int:
    """Return a random number from 0 to n - 1: ``rng.randrange(n)``."""
    bits = n.bit_length()
    found = rng.getrandbits(bits)
    while found >= n:
        found = rng.getrandbits(bits)
    return found


def permuted(n: int, rng: random.Random) -> list[int]:
    """Return 0 to n - 1 in a random order: ``rng.sample(range(n), n)``."""
    pool, bits, order = list(range(n)), rng.getrandbits, []
    for left in range(n, 0, -1):
        length = left.bit_length()
        place = bits(length)
        while place >= left:
            place = bits(length)
        order.append(pool[place])
        pool[place] = pool[left - 1]
    return order
