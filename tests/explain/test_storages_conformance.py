"""What every storage keeps to, whatever it stores."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding, Observed, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.storage import (
    CategoryStorage,
    Codes,
    GeometricReservoir,
    NumberStorage,
    RollingExtremes,
    SlidingWindow,
    TreeStorage,
    UniformReservoir,
)
from tests.kit.support import PROPERTY, Row, pickled, uses_no_global_random_numbers

CATEGORIES = ["u", "v", "w"]


def row(t: int) -> Row:
    """Return an observation that is like no other one."""
    return {"t": t, "number": float(t * 37 % 101), "category": CATEGORIES[t * 7 % 5 % 3]}


@dataclass(frozen=True)
class Kind:
    """How a storage is made of its size and random numbers, fed at a time, and read.

    ``held`` returns what is in it: one list for each bounded part.
    """

    make: Callable[[int, random.Random], Any]
    item: Callable[[int], Any]
    held: Callable[[Any], list[list[Any]]]

    def filled(self, size: int, n: int, rng: random.Random) -> Any:
        storage = self.make(size, rng)
        for t in range(n):
            storage.update(self.item(t))
        return storage


def rows(storage: Any) -> list[list[Any]]:
    return [storage.rows]


def values(storage: Any) -> list[list[Any]]:
    n = storage.counts.item()
    return storage.quantiles((np.arange(n) + 2 / 3) / (n + 1 / 3)).tolist()  # type: ignore[no-any-return]


def queues(storage: Any) -> list[list[Any]]:
    return [list(storage._falling), list(storage._rising)]


def number(t: int) -> Value:
    return row(t)["number"]


def numbers(t: int) -> Floats:
    return np.array([number(t)], np.float64)


def category(t: int) -> Value:
    return row(t)["category"]


ENCODING = Encoding()


def observed(t: int) -> Observed:
    return ENCODING.observe(row(t))


KINDS = {
    "uniform": Kind(UniformReservoir, observed, rows),
    "geometric": Kind(GeometricReservoir, observed, rows),
    "window": Kind(SlidingWindow, observed, rows),
    "numbers": Kind(lambda n, rng: NumberStorage(n, [rng]), numbers, values),
    "numbers by chance": Kind(
        lambda n, rng: NumberStorage(n, [rng], entrance_probability=0.3), numbers, values
    ),
    "numbers by age": Kind(
        lambda n, rng: NumberStorage(n, [rng], entrance_probability=0.7, by_age=True),
        numbers,
        values,
    ),
    "categories": Kind(CategoryStorage, category, lambda s: [s.categories()]),
    "categories by age": Kind(
        lambda n, rng: CategoryStorage(n, rng, 0.7, by_age=True),
        category,
        lambda s: [s.categories()],
    ),
    "extremes": Kind(lambda n, rng: RollingExtremes(n), number, queues),
    "tree of numbers": Kind(
        lambda n, rng: TreeStorage("number", n, rng, Codes(["category"])),
        row,
        lambda s: list(s.leaves()),
    ),
    "tree of categories": Kind(
        lambda n, rng: TreeStorage("category", n, rng, Codes(["category"])),
        row,
        lambda s: list(s.leaves()),
    ),
}

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@PROPERTY
@given(st.sampled_from(sorted(KINDS)), st.integers(1, 20), st.integers(0, 80), st.integers(0, 99))
def test_no_part_holds_more_than_size(name: str, size: int, n: int, seed: int) -> None:
    storage = KINDS[name].filled(size, n, random.Random(seed))
    assert all(len(part) <= size for part in KINDS[name].held(storage))


@every_kind
def test_global_random_state_is_neither_used_nor_changed(kind: Kind) -> None:
    uses_no_global_random_numbers(lambda: kind.held(kind.filled(5, 400, random.Random(1))))


@PROPERTY
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 300), st.integers(0, 99))
def test_a_pickled_storage_goes_on_the_same(name: str, cut: int, seed: int) -> None:
    kind = KINDS[name]
    original = kind.filled(5, cut, random.Random(seed))
    copy = pickled(original)
    for t in range(cut, cut + 100):
        original.update(kind.item(t))
        copy.update(kind.item(t))
    assert kind.held(copy) == kind.held(original)


@every_kind
@pytest.mark.parametrize("before", [0, 30])
def test_a_storage_holds_copies_and_leaves_what_it_is_offered(kind: Kind, before: int) -> None:
    abused, clean = (kind.filled(5, before, random.Random(1)) for _ in range(2))
    for t in range(before, 100):
        mine = kind.item(t)
        abused.update(mine)
        clean.update(kind.item(t))
        again: Any = kind.item(t)
        offered: Any = mine
        if isinstance(mine, Observed):
            offered, again = mine.x, again.x
        assert np.array_equal(offered, again)
        if isinstance(offered, dict):
            offered.update(t=-1, number=-1.0, category="spoiled")
    assert kind.held(abused) == kind.held(clean)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_a_wrong_size_is_named(kind: Kind, size: Any) -> None:
    with pytest.raises(ValueError, match=f"size is {size}, but must be an integer of at least 1"):
        kind.make(size, random.Random(1))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_storage_of_one_holds_the_only_observation(kind: Kind) -> None:
    storage = kind.filled(1, 1, random.Random(3))  # whose first number is below 0.3
    assert all(len(part) == 1 for part in kind.held(storage))
