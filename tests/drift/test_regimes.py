"""Periods that come back: named if the shares are the same, whatever the order of arrival."""

import pickle
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from fluxplain.drift.recent_observations import Recent
from fluxplain.drift.regimes import MOST, Regimes
from fluxplain.schemas import Change, Explanation
from fluxplain.schemas.change import Period, Status
from tests.kit import records

LENGTH, DELAY, FOLLOW_UP = 2000, 40, 1000

CONCEPTS = {
    "A": (0.6, 0.3, 0.1),
    "B": (0.1, 0.3, 0.6),
    "C": (0.6, 0.1, 0.3),
    "D": (0.3, 0.6, 0.1),
    "a": (1.8, 0.9, 0.3),  # as A, three times as large
}


def explanations(order: str, feature: int, seed: int = 1) -> Iterator[Explanation]:
    """Yield iPFI of a feature whose mean is that of each concept in turn."""
    rng = np.random.default_rng([seed, feature])
    for first in range(0, LENGTH * len(order), 10):
        mean = CONCEPTS[order[first // LENGTH]][feature]
        e = records.explanation("xyz"[feature], first + 9, 0.0)
        increments = rng.normal(mean, 0.5, 10).tolist()
        yield replace(e, seqs=[*range(first, first + 10)], increments=increments)


def second_record(begin: int, feature: str, status: Status = "confirmed") -> Change:
    change = records.change(feature, begin + DELAY, before=0.1, after=0.6)
    return replace(
        change,
        signal="increment",
        after_seq=begin,
        status=status,
        status_seq=begin + DELAY + FOLLOW_UP,
        incident=f"features-0@{begin}",
    )


def compared(
    order: str, rng: random.Random | None = None, features: str = "xz", seed: int = 1
) -> list[Change]:
    """Return the changes between concepts, once all features have reached their second records.

    With ``rng`` the features are ahead of each other, changes come in any order, and all is pickled
    at times.
    """
    recent, regimes = Recent([], 3, 10, 3 * FOLLOW_UP + 1000), Regimes()
    queues = [[*explanations(order, feature, seed)] for feature in range(3)]
    found = []
    for begin in range(LENGTH, LENGTH * len(order), LENGTH):
        changes = [second_record(begin, feature) for feature in features]
        due = (changes[0].status_seq or 0) // 10 + 1
        for queue in queues:
            ahead = rng.randrange(80) if rng else 0
            while queue and queue[0].seq // 10 < due + ahead:
                e = queue.pop(0)
                recent.add(e, e.seqs[0] - 1)
        if rng:
            rng.shuffle(changes)
            recent, regimes = pickle.loads(pickle.dumps((recent, regimes)))
        found += [regimes.compared(each, recent) for each in changes]
        recent.forget(changes[0].seq)
    return sorted(found, key=lambda change: (change.seq, change.feature or ""))


def periods(order: str, seed: int = 1) -> list[Period | None]:
    return [each.returns_to for each in compared(order, features="x", seed=seed)]


def test_a_period_that_comes_back_is_named() -> None:
    a, b = Period(0, LENGTH - 1), Period(LENGTH + DELAY + 1, 2 * LENGTH - 1)
    assert periods("ABAB") == [None, a, b]
    assert periods("ABDA") == [None, None, a]


def test_the_size_of_all_importances_does_not_matter() -> None:
    assert periods("ABa") == [None, Period(0, LENGTH - 1)]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_single_feature_returns_to_no_period_when_only_its_size_changes(noise: float) -> None:
    regimes, recent = Regimes(), Recent([], 1, 10, 4000)
    rng, read, found = np.random.default_rng(1), -1, list[Period | None]()
    for place, mean in enumerate([1.0, 2.0, 4.0, 8.0]):
        seqs = [*range(read + 1, (place + 1) * LENGTH)]
        increments = rng.normal(mean, noise, len(seqs)).tolist()
        e = records.explanation("x", seqs[-1], 0.0)
        recent.add(replace(e, seqs=seqs, increments=increments), read)
        read = seqs[-1]
        if place:
            found.append(regimes.compared(second_record(place * LENGTH, "x"), recent).returns_to)
    assert found == [None] * 3


@pytest.mark.parametrize("order", ["ABCD", "ABDC", "DACB"])
def test_new_profiles_are_not_taken_for_earlier_ones(order: str) -> None:
    assert [periods(order, seed=seed) for seed in range(5)] == [[None] * 3] * 5


def test_a_return_is_found_in_nearly_all_streams() -> None:
    assert sum(periods("ABA", seed=seed)[1] is not None for seed in range(10)) >= 9


def test_what_did_not_last_ends_no_period() -> None:
    regimes, recent = Regimes(), Recent([], 3, 10, 4000)
    statuses: list[Status] = ["noticed", "transient", "reverted"]
    for status in statuses:
        change = second_record(LENGTH, "x", status)
        assert regimes.compared(change, recent) is change


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_arrival_and_restarts_do_not_matter(seed: int) -> None:
    assert compared("ABABCA", random.Random(seed)) == compared("ABABCA")


def test_the_remembered_periods_are_bounded() -> None:
    order: Sequence[str] = "AB" * 50
    recent, regimes = Recent([], 3, 10, 4000), Regimes()
    sizes = []
    for place in range(1, len(order)):
        begin = place * LENGTH
        for feature in range(3):
            e = records.explanation("xyz"[feature], begin, 0.0)
            seqs = [*range(begin - 1000, begin + 1200, 10)]
            increments = [CONCEPTS[order[seq // LENGTH]][feature] for seq in seqs if seq >= 0]
            recent.add(replace(e, seqs=seqs, increments=increments), begin - 1001)
        regimes.compared(second_record(begin, "x"), recent)
        sizes.append(len(pickle.dumps(regimes)))
    assert sizes[-1] <= 1.1 * sizes[2 * MOST]
