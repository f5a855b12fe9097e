"""The schedule of disturbances: from the seed alone, complete, and one broker at a time."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.chaos.schedule import (
    MOST_WORKERS,
    ROLES,
    WORKERS,
    Disturbance,
    Wanted,
    make_schedule,
    store_of,
)

SPAN_S = 180.0
SESSION_TIMEOUT_S = 10.0
WANTED = Wanted()


def plan(seed: int, wanted: Wanted = WANTED) -> list[Disturbance]:
    return make_schedule(seed, wanted, span_s=SPAN_S, session_timeout_s=SESSION_TIMEOUT_S)


def test_the_same_seed_gives_the_same_schedule_and_another_one_another() -> None:
    assert plan(1) == plan(1) != plan(2)


@pytest.mark.parametrize("seed", range(20))
def test_all_that_is_wanted_is_planned_in_order_and_within_the_span(seed: int) -> None:
    wanted = Wanted(kills=28, broker_kills=3, rebalances=8, pauses=2)
    schedule = plan(seed, wanted)
    kinds = Counter(each.kind for each in schedule)
    assert kinds["kill"] == 28
    assert kinds["broker-kill"] == 3
    assert kinds["add"] + kinds["remove"] == 8
    assert kinds["pause"] == 2
    times = [each.at_s for each in schedule]
    assert times == sorted(times)
    assert all(0 <= each.at_s <= SPAN_S for each in schedule)
    kills = Counter(each.role for each in schedule if each.kind == "kill")
    assert min(kills[role] for role in ROLES) >= 6


@pytest.mark.parametrize("seed", range(20))
def test_there_are_always_workers_of_each_role_and_never_too_many(seed: int) -> None:
    workers = dict.fromkeys(ROLES, WORKERS)
    for each in plan(seed, Wanted(rebalances=30)):
        workers[each.role] += {"add": 1, "remove": -1}.get(each.kind, 0)
        assert WORKERS <= workers[each.role] <= MOST_WORKERS


@pytest.mark.parametrize("seed", range(20))
def test_a_pause_outlasts_the_session_and_ends_within_the_span(seed: int) -> None:
    for each in plan(seed, Wanted(pauses=4)):
        if each.kind == "pause":
            assert each.lasts_s > SESSION_TIMEOUT_S + 1
            assert each.at_s + each.lasts_s <= SPAN_S


@pytest.mark.parametrize("seed", range(20))
def test_a_broker_is_back_long_before_the_next_one_is_killed(seed: int) -> None:
    outages = [each for each in plan(seed) if each.kind == "broker-kill"]
    for each, following in pairwise(outages):
        assert each.at_s + each.lasts_s + 15 < following.at_s
        assert each.node in {1, 2, 3}


@pytest.mark.parametrize("seed", range(20))
def test_in_each_outage_workers_of_all_roles_are_killed(seed: int) -> None:
    schedule = plan(seed, Wanted(kills=24, broker_kills=3))
    for outage in (each for each in schedule if each.kind == "broker-kill"):
        during = {
            each.role
            for each in schedule
            if each.kind == "kill" and outage.at_s < each.at_s < outage.at_s + outage.lasts_s
        }
        assert during == set(ROLES)


@pytest.mark.parametrize("first", range(-5, 20))
def test_in_a_row_of_five_seeds_both_stores_occur(first: int) -> None:
    assert {store_of(seed) for seed in range(first, first + 5)} == {"directory", "topic"}


def test_every_running_worker_can_be_chosen() -> None:
    names = ["drift-3", "drift-1", "drift-2"]
    chosen = [Disturbance(0.0, "kill", "drift", pick).choose(names) for pick in (0.0, 0.5, 0.99)]
    assert chosen == ["drift-1", "drift-2", "drift-3"]
