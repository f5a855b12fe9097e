"""Where a change is: the region that carries it is found, and none is named without one."""

import random
from math import nan

import numpy as np
import pytest

from fluxplain.drift.region import MOST_COMPARED, Side, find_region
from fluxplain.evaluate.encoding import Floats

N = 900


def observations(rng: np.random.Generator, *, dependent: bool = False) -> dict[str, Floats]:
    values: dict[str, Floats] = {f"x{i}": rng.random(N) for i in range(4)}
    values["city"] = rng.integers(0, 4, N).astype(float)
    if dependent:
        for name in ("x0", "x1"):
            values[name] = wandering(rng)
    return values


def wandering(rng: np.random.Generator) -> Floats:
    numbers = rng.normal(size=N)
    for t in range(1, N):
        numbers[t] += 0.9 * numbers[t - 1]
    return numbers


def increments(rng: np.random.Generator, values: dict[str, Floats]) -> Floats:
    """Return increments that depend on a feature, with long tails on both sides."""
    noise = rng.standard_exponential(N) * rng.choice([-0.4, 0.4], N)
    found: Floats = 0.3 * values["x0"] + noise
    return found


def sides(seed: int, *, dependent: bool = False) -> tuple[np.random.Generator, Side, Side]:
    rng = np.random.default_rng(seed)
    made = [observations(rng, dependent=dependent) for _ in range(2)]
    noise = [wandering(rng) if dependent else 0.0 for _ in range(2)]
    both = [Side(v, increments(rng, v) + n) for v, n in zip(made, noise, strict=True)]
    return rng, both[0], both[1]


def overlap(side: Side, cuts: object, truth: object) -> float:
    found = np.ones(N, bool)
    for cut in cuts:  # type: ignore[attr-defined]
        found &= cut.holds(side.values[cut.name])
    return float((found & truth).sum() / (found | truth).sum())


def test_a_box_of_two_numbers_is_found() -> None:
    overlaps = []
    for seed in range(20):
        _, before, after = sides(seed)
        truth = (after.values["x1"] > 0.6) & (after.values["x2"] <= 0.5)
        found = find_region(
            before, after._replace(increments=after.increments + truth), ["city"], random.Random(1)
        )
        overlaps.append(0.0 if found is None else overlap(after, found.cuts, truth))
    assert sum(each >= 0.8 for each in overlaps) >= 18


def test_a_box_is_found_whose_conditions_alone_show_little() -> None:
    overlaps = []
    for seed in range(20):
        _, before, after = sides(seed)
        truth = (after.values["x1"] > 0.6) & (after.values["x2"] <= 0.5)
        moved = after._replace(increments=after.increments + 0.55 * truth)
        found = find_region(before, moved, ["city"], random.Random(seed))
        overlaps.append(0.0 if found is None else overlap(after, found.cuts, truth))
    assert sum(each >= 0.5 for each in overlaps) >= 16


def test_a_category_is_found_with_what_it_carries() -> None:
    _, before, after = sides(5)
    truth = after.values["city"] == 2.0
    found = find_region(
        before, after._replace(increments=after.increments - truth), ["city"], random.Random(1)
    )
    assert found is not None
    [cut] = found.cuts
    assert (cut.name, cut.at, cut.is_equal, cut.is_not) == ("city", 2.0, True, False)
    assert found.coverage == pytest.approx(truth.mean())
    assert found.share == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("dependent", [False, True])
def test_a_change_of_all_observations_has_no_region(dependent: bool) -> None:
    for seed in range(20):
        _, before, after = sides(seed, dependent=dependent)
        moved = after._replace(increments=after.increments + 0.5)
        assert find_region(before, moved, ["city"], random.Random(seed)) is None


def test_noisier_increments_somewhere_are_no_region() -> None:
    named = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        made = [observations(rng) for _ in range(2)]
        noise = [rng.normal(size=N) * np.where(v["x0"] > 0.9, 5.0, 0.3) for v in made]
        before, after = Side(made[0], noise[0]), Side(made[1], 0.2 + noise[1])
        named.append(find_region(before, after, ["city"], random.Random(seed)))
    assert not any(named)


def test_a_region_is_the_whole_also_if_one_half_of_it_changes_more() -> None:
    overlaps = []
    for seed in range(20):
        _, before, after = sides(seed)
        truth = (after.values["x1"] > 0.6) & (after.values["x2"] <= 0.5)
        more = truth * np.where(after.values["x3"] > 0.5, 2.0, 0.4)
        moved = after._replace(increments=after.increments + more)
        found = find_region(before, moved, ["city"], random.Random(seed))
        overlaps.append(0.0 if found is None else overlap(after, found.cuts, truth))
    assert sum(each >= 0.8 for each in overlaps) >= 18


def test_few_or_missing_values_name_no_region() -> None:
    _, before, after = sides(1)
    few = Side({name: each[:20] for name, each in after.values.items()}, after.increments[:20])
    none = Side({}, np.empty(0))
    blank = Side({name: np.full(N, nan) for name in after.values}, after.increments + 1.0)
    for other in (few, none, blank):
        assert find_region(before, other, ["city"], random.Random(1)) is None
        assert find_region(other, before, ["city"], random.Random(1)) is None


def test_only_the_nearest_observations_are_compared() -> None:
    rng = np.random.default_rng(2)
    sides = [Side({"a": rng.random(2 * MOST_COMPARED)}, np.zeros(2 * MOST_COMPARED)) for _ in "ba"]
    before, after = sides
    before.increments[:MOST_COMPARED] = -5.0
    after.increments[:] = np.where(after.values["a"] > 0.8, 1.0, 0.0)
    after.increments[MOST_COMPARED:] = 7.0
    found = find_region(before, after, [], random.Random(1))
    assert found is not None
    [cut] = found.cuts
    assert (cut.name, cut.is_not) == ("a", True)
    assert cut.at == pytest.approx(0.8, abs=0.02)


def test_a_change_that_one_observation_undoes_has_no_region() -> None:
    rng = np.random.default_rng(0)
    before = Side({"a": rng.random(1000)}, np.zeros(1000))
    values = rng.random(1000)
    increments = np.where(values > 0.5, 1.0, 0.0)
    increments[0] -= increments.sum()
    assert increments.mean() == 0.0
    assert find_region(before, Side({"a": values}, increments), [], random.Random(1)) is None
