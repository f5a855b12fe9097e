"""A time budget announces fewer explanations while they take too long, and then more."""

from itertools import pairwise
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.worker.budget import MOST, PATIENCE_S, ROOM, WINDOW, StreamBudget
from tests.kit.support import make_config

DELAY = 7
"""Records between an announcement and its effect."""


class Pipeline:
    """A stream with a budget of 10 ms; a record takes ``cost_s / every``."""

    def __init__(self, *, least: int = 1) -> None:
        self.budget = StreamBudget(0.01, least)
        self.every = least
        self.announced: list[int] = []
        self._due: list[tuple[int, int]] = []
        self._n = 0

    def run(self, records: int, *, cost_s: float) -> None:
        for _ in range(records):
            self._n += 1
            while self._due and self._due[0][0] <= self._n:
                self.every = self._due.pop(0)[1]
            announced = self.budget.see(self.every, seconds=cost_s / self.every, now=self._n / 100)
            if announced is not None:
                self.announced.append(announced)
                self._due.append((self._n + DELAY, announced))


@pytest.mark.parametrize(
    ("cost_s", "announced"),
    [(0.009, []), (0.05, [2, 4, 8]), (1e9, [*(2**i for i in range(1, 14)), MOST])],
)
def test_explanations_are_halved_until_they_fit_the_budget_or_reach_the_minimum(
    cost_s: float, announced: list[int]
) -> None:
    pipeline = Pipeline()
    pipeline.run(40 * WINDOW, cost_s=cost_s)
    assert pipeline.announced == announced


def test_with_room_in_the_budget_more_is_explained_again() -> None:
    pipeline = Pipeline(least=2)
    pipeline.run(20 * WINDOW, cost_s=0.15)
    assert pipeline.every == 16
    pipeline.run(20 * WINDOW, cost_s=0.018)
    assert pipeline.every == 4
    assert 0.01 / ROOM < 0.018 / 4
    pipeline.run(20 * WINDOW, cost_s=0.0001)
    assert pipeline.every == 2


def test_an_announcement_that_is_not_read_back_is_repeated() -> None:
    budget = StreamBudget(0.01, least=1)
    announced = [
        n
        for n in range(20 * WINDOW)
        if budget.see(1, seconds=0.05, now=n * PATIENCE_S / WINDOW) is not None
    ]
    assert announced[0] == WINDOW - 1
    assert all(later - n >= 2 * WINDOW - 1 for n, later in pairwise(announced))


def two_streams(**settings: Any) -> Config:
    """Return settings in which only stream 1 has a budget."""
    stream = {"explain": {"budget_ms": 10.0, "every": 8}}
    return make_config(
        model={"shards": 2}, explain={"every": 2}, **{"streams": {1: stream}, **settings}
    )


def test_a_stream_may_have_its_own_budget_which_only_the_first_shard_keeps() -> None:
    config = two_streams(control={"topic": True})
    first, second = config.replicas("model")
    assert StreamBudget.of(config, second, 1) is None
    assert StreamBudget.of(config, Replica("explainer"), 1) is None
    budget = StreamBudget.of(config, first, 1)
    assert budget
    seen = [budget.see(16, seconds=0.0001, now=float(n)) for n in range(WINDOW)]
    assert seen[-1] == 8
    seen = [budget.see(8, seconds=0.0001, now=float(n)) for n in range(3 * WINDOW)]
    assert seen == [None] * 3 * WINDOW, "the stream's own `every` is the lower limit"


@pytest.mark.parametrize(("every", "announced"), [(16, [2, None, None]), (2, [None] * 3)])
def test_the_announcement_of_a_removed_budget_is_reverted_once(
    every: int, announced: list[int | None]
) -> None:
    config = two_streams(control={"topic": True})
    budget = StreamBudget.of(config, config.replicas("model")[0], 0)
    assert budget
    assert [budget.see(every, seconds=9.0, now=float(n)) for n in range(3)] == announced
    without = two_streams(streams={})
    assert StreamBudget.of(without, without.replicas("model")[0], 0) is None, (
        "nowhere to announce it"
    )
