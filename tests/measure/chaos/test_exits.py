"""Workers that end as they should not fail a run; those that we killed or may give up do not."""

import pytest

from tests.measure.chaos.exits import Exits, Stop


def exits(
    *deaths: tuple[str, int], killed: tuple[str, ...] = (), removed: tuple[Stop, ...] = ()
) -> Exits:
    return Exits(deaths, killed, removed, stopped=[Stop(0)])


def test_kills_of_the_run_are_no_ends_by_themselves() -> None:
    result = exits(("model-1", -9), ("model-1", -9), killed=("model-1", "model-1"))
    assert result.by_themselves().total() == 0
    assert result.problems() == []


@pytest.mark.parametrize("status", [70, 75])
def test_a_worker_that_gives_up_is_counted_and_no_problem(status: int) -> None:
    result = exits(("model-1", status), ("drift-1", -9), killed=("drift-1",))
    assert result.problems() == []
    assert f"{status}: 1" in str(result.numbers()["workers that ended by themselves"])


@pytest.mark.parametrize(
    ("status", "said"), [(0, "exit status 0"), (1, "exit status 1"), (-11, "signal 11")]
)
def test_a_worker_that_dies_otherwise_is_a_problem(status: int, said: str) -> None:
    assert exits(("model-1", status)).problems() == [f"workers died: 1 by {said}"]


def test_a_worker_that_somebody_else_killed_is_a_problem() -> None:
    assert exits(("model-1", -9), ("model-1", -9), killed=("model-1",)).problems()
    assert exits(("model-1", -9), killed=("model-2",)).problems()


@pytest.mark.parametrize("outage", [False, True])
@pytest.mark.parametrize("status", [0, -15])
def test_a_worker_may_stop_in_good_order_or_before_it_began(status: int, outage: bool) -> None:
    assert exits(removed=(Stop(status, outage),)).problems() == []


@pytest.mark.parametrize("status", [70, 75])
def test_a_worker_that_is_told_to_stop_may_give_up_only_without_a_broker(status: int) -> None:
    assert exits(removed=(Stop(status, outage=True),)).problems() == []
    assert exits(removed=(Stop(status),)).problems() == [
        f"workers did not stop in good order: 1 by exit status {status}"
    ]


@pytest.mark.parametrize("status", [1, -9])
def test_a_worker_that_crashes_when_it_is_told_to_stop_is_always_a_problem(status: int) -> None:
    assert exits(removed=(Stop(status, outage=True),)).problems()


def test_how_workers_stop_at_the_end_matters_too() -> None:
    assert Exits([], [], [], stopped=[Stop(0), Stop(70)]).problems()


def test_the_numbers_tell_all_that_is_not_as_it_should_be() -> None:
    result = exits(("model-1", 70), ("drift-2", 75), removed=(Stop(0), Stop(70, True), Stop(-15)))
    assert result.numbers() == {
        "workers that ended by themselves": "2 (status 70: 1, 75: 1)",
        "removed with another status than 0": (
            "2 (1 by signal 15 with all brokers there; 1 by exit status 70 with a broker away)"
        ),
        "stopped at the end with another status than 0": "0",
    }
