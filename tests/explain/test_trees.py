"""Tree storages: draws follow the conditional distribution, in leaves that come and go."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.stats import Var
from river.tree.split_criterion import VarianceReductionSplitCriterion

from fluxplain.evaluate import Value
from fluxplain.explain.storage import Codes, TreeStorage
from fluxplain.explain.storage.tree_storage import BINS, MAX_DEPTH, MOST_CATEGORIES, BinSplitter
from tests.kit.support import SLOW_PROPERTY, Row, pickled

SIZE = 20
CHANCES = (0.1, 0.5, 0.9)
"""Of b being high, by the value of a."""


def world(seed: int, of_a: Callable[[int], Value], of_b: Callable[[bool], Value]) -> Iterator[Row]:
    """Yield observations: b depends on a by :data:`CHANCES`, c is independent."""
    rng = random.Random(seed)
    while True:
        a = rng.randrange(3)
        b = rng.random() < CHANCES[a]
        yield {"a": of_a(a), "b": of_b(b), "c": rng.random()}


def stored(rows: Iterator[Row], n: int, *, categorical: str = "", size: int = SIZE) -> TreeStorage:
    """Return a storage of b that has seen n observations."""
    storage = TreeStorage("b", size, random.Random(1), Codes(categorical))
    for _ in range(n):
        storage.update(next(rows))
    return storage


def number(value: int) -> Value:
    return float(value)


def name(value: int) -> Value:
    return "uvw"[value]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        (number, name),
        (name, number),
        *(pytest.param(of, of, marks=pytest.mark.slow) for of in (number, name)),
    ],
)
def test_draws_follow_the_marginal_or_the_conditional_by_what_is_hidden(
    of_a: Callable[[int], Value], of_b: Callable[[int], Value]
) -> None:
    """The tolerance is four standard deviations of the share of high values.

    A set of n draws has the variance p(1-p)(1/n + 1/L) of draws from a leaf's L values, and at most
    p(1-p)/(2L-1) from the branches' shares, whose weights fade by 1 - 1/L. The sets are apart by
    60 visits to a leaf, so neighbours are correlated by (1 - 1/L)^60 < 0.05.
    """
    high = of_b(1)
    rows = world(1, of_a, of_b)
    kinds = "".join(f for f, of in (("a", of_a), ("b", of_b)) if of is name)
    storage = stored(rows, 3_000, categorical=kinds)
    hidden: dict[str, list[tuple[Row, set[str]]]] = {"marginal": [({}, {"a", "b", "c"})]}
    for a in range(3):
        x: Row = {"a": of_a(a), "b": high, "c": 0.5}
        hidden["marginal"].append((x, {"a", "b"}))
        hidden[f"given a = {a}"] = [(x, {"b"}), (x, {"b", "c"})]
    hidden["marginal"][0] = ({"a": of_a(0), "b": high, "c": 0.5}, {"a", "b", "c"})
    expected = dict(zip(hidden, (0.5, *CHANCES), strict=True))
    sets, n, apart = 60, 20, 180
    counts = {case: [0] * len(asked) for case, asked in hidden.items()}
    for _ in range(sets):
        for _ in range(apart):
            storage.update(next(rows))
        for case, asked in hidden.items():
            for i, (x, unknown) in enumerate(asked):
                counts[case][i] += storage.draws(x, unknown, n).count(high)
    for case, p in expected.items():
        variance = p * (1.0 - p) * (1.0 / n + 1.0 / SIZE + 1.0 / (2 * SIZE - 1)) / sets
        tolerance = 4.0 * math.sqrt(1.1 * variance)
        for count in counts[case]:
            assert abs(count / (sets * n) - p) < tolerance, case


def test_new_leaves_hold_only_what_came_to_them() -> None:
    """b is a: as soon as there is a split, the values of a leaf are those of its side."""
    rng = random.Random(1)
    storage = TreeStorage("b", 10, rng, Codes([]))
    for t in range(1_000):
        a = float(rng.random() < 0.5)
        storage.update({"a": a, "b": a})
        if t > 400:
            assert set(storage.draws({"a": a, "b": a}, {"b"}, 5)) == {a}
    assert sum(1 for _ in storage.leaves()) > 1


def test_after_a_drift_of_the_features_the_marginal_follows_as_fast_as_the_values() -> None:
    """What is older than 10 L visits has the weight (1 - 1/L)^(10 L) < 1e-4."""
    rng = random.Random(1)
    storage = TreeStorage("b", SIZE, rng, Codes([]))
    for t in range(4_000 + 10 * SIZE):
        a = float(rng.random() < (0.9 if t < 4_000 else 0.0))
        storage.update({"a": a, "b": a})
    assert set(storage.draws({"a": 1.0, "b": 1.0}, {"a", "b"}, 200)) == {0.0}
    # what is known to be on the other side still has the values that were seen there
    assert set(storage.draws({"a": 1.0, "b": 1.0}, {"b"}, 200)) == {1.0}


def drifting(n: int, seed: int = 1) -> Iterator[Row]:
    """Yield observations in which b is decided by a in the first half, by c in the second."""
    rng = random.Random(seed)
    for t in range(n):
        a, c = rng.random(), rng.random()
        decisive = a if t < n // 2 else c
        yield {"a": a, "b": float(decisive > 0.5) + rng.gauss(0.0, 0.05), "c": c}


def named(x: Row) -> Row:
    """Return the observation with a category in place of the number b."""
    return {**x, "b": "high" if float(x["b"]) > 0.5 else "low"}


@pytest.mark.parametrize("is_categorical", [False, True])
def test_leaves_go_when_the_tree_learns_that_another_feature_decides(is_categorical: bool) -> None:
    codes = Codes("b" if is_categorical else "")
    storage = TreeStorage("b", SIZE, random.Random(1), codes)
    rows = [named(x) if is_categorical else x for x in drifting(8_000)]
    for x in rows[:4_000]:
        storage.update(x)
    before = list(storage.leaves())
    for x in rows[4_000:]:
        storage.update(x)
    after = list(storage.leaves())
    assert storage._tree.n_alternate_trees > 0
    assert not all(any(leaf is other for other in after) for leaf in before)
    for c in (0.1, 0.9):
        given_c = storage.draws({**rows[0], "c": c}, {"a", "b"}, 200)
        high = [v == "high" if is_categorical else float(v) > 0.5 for v in given_c]
        # the mirror image of the first half, when a decided and c said nothing
        assert (sum(high) > 100) == (c > 0.5)


@pytest.mark.slow
@SLOW_PROPERTY
@given(st.integers(0, 1_500), st.sampled_from(["", "b"]))
def test_a_pickled_storage_goes_on_the_same(cut: int, categorical: str) -> None:
    rows = list(drifting(2_000, seed=cut))
    original = stored(iter(rows), cut, categorical=categorical)
    copy = pickled(original)
    for x in rows[cut:]:
        original.update(x)
        copy.update(x)
    assert list(copy.leaves()) == list(original.leaves())
    assert copy.draws(rows[0], {"b"}, 50) == original.draws(rows[0], {"b"}, 50)


def test_an_alternate_subtree_is_filled_before_it_takes_over() -> None:
    storage, seen = TreeStorage("b", SIZE, random.Random(1), Codes([])), 0
    for x in drifting(5_000):
        storage.update(x)
        for branch in storage._tree._root.iter_branches():
            if branch._alternate_tree is not None:
                seen += 1
                assert branch._alternate_tree.values
    assert seen > 0


def test_memory_is_bounded_by_the_depth() -> None:
    """A branch has one alternate leaf at most, beside the leaves below it."""
    size, rng = 5, random.Random(1)
    storage, heights = TreeStorage("b", size, rng, Codes([])), set()
    for t in range(16_000):
        a = rng.random()
        storage.update({"a": a, "b": a if t < 12_000 else -a})
        if t % 100 == 99:
            heights.add(storage._tree.height)
            assert len(storage) <= size * (2 ** (MAX_DEPTH + 1) - 1)
    assert max(heights) == MAX_DEPTH + 1  # levels, with the leaves


def test_later_categories_are_not_told_apart() -> None:
    codes = Codes(["c"])
    storage = TreeStorage("c", 5, random.Random(1), codes)
    for t in range(500):
        storage.update({"a": float(t), "c": t})
    assert codes({"c": 0}) == {"c": 0}
    assert codes({"c": MOST_CATEGORIES}) == codes({"c": "new"}) == {"c": MOST_CATEGORIES}
    assert len(storage._tree._root.stats) == MOST_CATEGORIES + 1


def test_two_subtrees_without_error_are_no_harm() -> None:
    """River's comparison of them divides by the variance of their errors."""
    rng = random.Random(1)
    storage = TreeStorage("b", 5, rng, Codes([]))
    for _ in range(1_000):
        a = rng.random()
        storage.update({"a": a, "b": float(a > 0.5)})
    while not storage._tree.n_alternate_trees:
        storage.update({"a": 0.9, "b": 0.0})
    for _ in range(1_000):
        storage.update({"a": 0.1, "b": 0.0})
    assert storage.draws({"a": 0.1, "b": 1.0}, {"b"}, 1) == [0.0]


def test_a_feature_that_is_missing_is_as_hidden() -> None:
    storage = stored(world(1, number, number), 1_000)
    storage.update({"b": 1.0, "c": 0.5})
    assert set(storage.draws({"b": 1.0, "c": 0.5}, {"b"}, 200)) == {0.0, 1.0}


def test_nothing_can_be_drawn_before_anything_is_stored() -> None:
    storage = TreeStorage("b", 5, random.Random(1), Codes([]))
    assert len(storage) == 0
    with pytest.raises(ValueError, match="no value of b is stored yet"):
        storage.draws({"a": 1.0, "b": 1.0}, {"b"}, 1)


@pytest.mark.parametrize("kind", [int, bool, np.float32, np.int64])
def test_numbers_may_be_of_any_kind(kind: Callable[[int], Any]) -> None:
    storage, same = (TreeStorage("b", 5, random.Random(1), Codes([])) for _ in range(2))
    for t in range(300):
        storage.update({"a": kind(t % 2), "b": kind(t % 2)})
        same.update({"a": float(t % 2), "b": float(t % 2)})
    assert storage.draws({"a": kind(1), "b": 0}, {"b"}, 1) == [kind(1)]
    assert list(storage.leaves()) == list(same.leaves())


def test_a_category_in_place_of_a_number_is_named_and_nothing_is_stored() -> None:
    storage = TreeStorage("b", 5, random.Random(1), Codes([]))
    with pytest.raises(ValueError, match=r"a is 'u', but must be a number.*categorical"):
        storage.update({"a": "u", "b": 1.0})
    assert len(storage) == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_bins_find_the_step_whatever_the_scale(scale: float) -> None:
    """Between 32 bins of 2,000 uniform values the step is missed by 2/32 of the range at most."""
    splitter, seen, rng = BinSplitter(), Var(), random.Random(1)
    for _ in range(2_000):
        x = rng.random()
        y = float(x > 0.3)
        splitter.update(x * scale, y, 1.0)
        seen.update(y)
    best = splitter.best_evaluated_split_suggestion(
        VarianceReductionSplitCriterion(), seen, "a", True
    )
    assert abs(best.split_info / scale - 0.3) < 2.0 / BINS
    assert sum(child.n for child in best.children_stats) == pytest.approx(2_000)
    assert len(splitter._centres) <= BINS


def test_of_a_single_value_there_is_no_split() -> None:
    splitter, seen = BinSplitter(), Var()
    for _ in range(10):
        splitter.update(1.0, 2.0, 1.0)
        seen.update(2.0)
    best = splitter.best_evaluated_split_suggestion(
        VarianceReductionSplitCriterion(), seen, "a", True
    )
    assert best.feature is None
