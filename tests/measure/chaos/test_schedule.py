"""The schedule of disturbances: from the seed alone, complete, and one broker at a time."""

from collections import Counter
from itertools import pairwise

import pytest

from fluxplain.config.kafka_settings import SESSION_TIMEOUT_S
from tests.measure.chaos.schedule import (
    EVERYTHING,
    MOST_WORKERS,
    ROLES,
    WORKERS,
    WRITERS,
    Disturbance,
    Targets,
    Wanted,
    make_schedule,
    needed_s,
    store_of,
)

SPAN_S = 180.0
WANTED = Wanted()


def plan(seed: int, wanted: Wanted = WANTED, targets: Targets = EVERYTHING) -> list[Disturbance]:
    return make_schedule(seed, wanted, max(SPAN_S, needed_s(seed, wanted)), targets)


def test_the_same_seed_gives_the_same_schedule_and_another_one_another() -> None:
    assert plan(1) == plan(1) != plan(2)


@pytest.mark.parametrize("seed", range(20))
def test_all_that_is_wanted_is_planned_in_order_and_within_the_span(seed: int) -> None:
    wanted = Wanted(kills=28, broker_kills=3, rebalances=8, pauses=2, poisons=33, bombs=11)
    schedule = plan(seed, wanted)
    kinds = Counter(each.kind for each in schedule)
    assert kinds["kill"] == 28
    assert kinds["broker-kill"] == 3
    assert kinds["add"] + kinds["remove"] == 8
    assert kinds["pause"] == 2
    for kind in ("all-kill", "partitions", "foreign"):
        assert kinds[kind] == 1
    assert (kinds["outage"], kinds["freeze"], kinds["poison"], kinds["bomb"]) == (3, 2, 33, 11)
    for kind in ("poison", "bomb"):
        assert {e.topic for e in schedule if e.kind == kind} >= {"features", *WRITERS}
    times = [each.at_s for each in schedule]
    assert times == sorted(times)
    span_s = max(SPAN_S, needed_s(seed, wanted))
    assert all(0 <= each.at_s <= span_s for each in schedule)
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
            assert each.at_s + each.lasts_s <= needed_s(seed, WANTED)


@pytest.mark.parametrize("seed", range(20))
def test_outages_are_one_at_a_time_and_long_and_short_ones_occur(seed: int) -> None:
    outages = [each for each in plan(seed) if each.kind == "outage"]
    for each, following in pairwise(outages):
        assert each.at_s + each.lasts_s + 5 < following.at_s
    lengths = sorted(each.lasts_s for each in outages)
    assert 10 <= lengths[0] <= 60
    assert 110 <= lengths[-1] <= 150


@pytest.mark.parametrize("seed", range(20))
def test_a_frozen_worker_writes_to_the_topic_and_is_back_after_its_session(seed: int) -> None:
    schedule = plan(seed, Wanted(outages=3, frozen=3))
    outages = {each.topic: each for each in schedule if each.kind == "outage"}
    frozen = [each for each in schedule if each.kind == "freeze"]
    assert len(frozen) == 3
    first = next(each for each in schedule if each.kind == "outage")
    assert (first.topic, frozen[0].role) == ("observations", "join")
    assert first.lasts_s >= 110
    for each in frozen:
        outage = outages[each.topic]
        assert each.role in WRITERS[each.topic]
        assert -1 <= each.at_s - outage.at_s <= 4
        assert each.lasts_s > SESSION_TIMEOUT_S + 1


@pytest.mark.parametrize("seed", range(20))
def test_without_joined_topics_nothing_is_done_to_them(seed: int) -> None:
    targets = Targets(
        ROLES[1:], ("features", *(each for each in WRITERS if each != "observations"))
    )
    for each in plan(seed, Wanted(), targets):
        assert each.topic not in {"labels", "observations"}
        assert each.kind not in {"kill", "pause", "foreign", "freeze"} or each.role != "join"


def test_other_kinds_leave_the_old_ones_as_they_are() -> None:
    old = {"kill", "broker-kill", "add", "remove", "pause"}
    few, many = (
        make_schedule(3, wanted, SPAN_S)
        for wanted in (Wanted(), Wanted(outages=0, poisons=0, all_kills=3))
    )
    assert [e for e in few if e.kind in old] == [e for e in many if e.kind in old]


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
