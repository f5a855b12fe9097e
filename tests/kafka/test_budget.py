"""A time budget asks for fewer explanations while they take too long, and then for more."""

from itertools import pairwise

from pipeline.kafka.budget import MOST, PATIENCE_S, ROOM, WINDOW, TimeBudget, budget_of, outdated
from pipeline.parts import Part
from tests.support import make_config


class Pipeline:
    """Takes what is announced some records later; a record takes what explaining one of k costs."""

    def __init__(self, budget_s: float, *, least: int = 1, delay: int = 7) -> None:
        self.budget = TimeBudget(budget_s, least)
        self.every = least
        self.announced: list[int] = []
        self._due: list[tuple[int, int]] = []
        self._n = 0
        self._delay = delay

    def run(self, records: int, *, cost_s: float) -> None:
        for _ in range(records):
            self._n += 1
            while self._due and self._due[0][0] <= self._n:
                self.every = self._due.pop(0)[1]
            seconds = cost_s / self.every
            told = self.budget.see(0, self.every, seconds=seconds, now=self._n / 100)
            if told is not None:
                self.announced.append(told)
                self._due.append((self._n + self._delay, told))


def test_within_the_budget_nothing_is_announced() -> None:
    pipeline = Pipeline(0.01)
    pipeline.run(10 * WINDOW, cost_s=0.009)
    assert pipeline.announced == []


def test_too_long_is_halved_until_it_fits_and_then_it_stays() -> None:
    pipeline = Pipeline(0.01)
    pipeline.run(20 * WINDOW, cost_s=0.05)
    assert pipeline.announced == [2, 4, 8]


def test_when_there_is_room_more_is_explained_again() -> None:
    pipeline = Pipeline(0.01, least=2)
    pipeline.run(20 * WINDOW, cost_s=0.15)
    assert pipeline.every == 16
    pipeline.run(20 * WINDOW, cost_s=0.018)
    assert pipeline.every == 4
    assert 0.01 / ROOM < 0.018 / 4
    pipeline.run(20 * WINDOW, cost_s=0.0001)
    assert pipeline.every == 2


def test_it_announces_again_what_did_not_come() -> None:
    budget = TimeBudget(0.01, least=1)
    announced = [
        n
        for n in range(20 * WINDOW)
        if budget.see(0, 1, seconds=0.05, now=n * PATIENCE_S / WINDOW) is not None
    ]
    assert announced[0] == WINDOW - 1
    assert all(later - n >= 2 * WINDOW - 1 for n, later in pairwise(announced))


def test_it_never_announces_more_than_can_be() -> None:
    pipeline = Pipeline(1e-9)
    pipeline.run(40 * WINDOW, cost_s=1e6)
    assert pipeline.every == MOST


def test_partitions_have_budgets_of_their_own() -> None:
    budget = TimeBudget(0.01, least=1)
    for n in range(WINDOW - 1):
        assert budget.see(0, 1, seconds=0.05, now=n) is None
        assert budget.see(1, 1, seconds=0.001, now=n) is None
    assert budget.see(0, 1, seconds=0.05, now=WINDOW) == 2
    assert budget.see(1, 1, seconds=0.001, now=WINDOW) is None


def test_a_stream_may_have_a_budget_of_its_own() -> None:
    config = make_config(
        control={"topic": True},
        model={"shards": 2},
        explain={"every": 2},
        streams={1: {"explain": {"budget_ms": 10.0, "every": 8}}},
    )
    first, second = config.parts("model")
    assert budget_of(config, first, 0) is None
    assert budget_of(config, second, 1) is None
    assert budget_of(config, Part("explainer"), 1) is None
    budget = budget_of(config, first, 1)
    assert budget
    seen = [budget.see(1, 16, seconds=0.0001, now=float(n)) for n in range(WINDOW)]
    assert seen[-1] == 8
    seen = [budget.see(1, 8, seconds=0.0001, now=float(n)) for n in range(3 * WINDOW)]
    assert seen == [None] * 3 * WINDOW, "not more than the stream's own `every` wants"


def test_what_a_budget_asked_for_is_taken_back_once_it_is_gone() -> None:
    config = make_config(
        control={"topic": True},
        model={"shards": 2},
        explain={"every": 2},
        streams={1: {"explain": {"budget_ms": 10.0}}},
    )
    first, second = config.parts("model")
    assert outdated(config, first, 0, every=16) == 2
    assert outdated(config, first, 0, every=2) is None, "as the settings want"
    assert outdated(config, first, 1, every=16) is None, "this stream's budget is still there"
    assert outdated(config, second, 0, every=16) is None
    assert outdated(config, Part("explainer"), 0, every=16) is None
    without = make_config(explain={"every": 2})
    assert outdated(without, Part("model"), 0, every=16) is None, "nowhere to announce it"
