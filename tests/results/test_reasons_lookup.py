"""The reasons of the observation that is meant: the newest of several with its id or seq."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fluxplain.config import ConfigError
from fluxplain.results.reasons_lookup import Wanted, find_reasons
from fluxplain.schemas import Prediction, Reasons
from fluxplain.schemas.record import Timestamp
from tests.kit.records import prediction, reasons

ID = "tx"


def both(seq: int, incarnation: str = "1") -> tuple[Prediction, Reasons]:
    """Return prediction and reasons of an observation."""
    return (
        replace(prediction(seq), id=ID, incarnation=incarnation),
        replace(reasons(seq), id=ID, incarnation=incarnation),
    )


def orders(records: Sequence[Prediction | Reasons]) -> list[list[Prediction | Reasons]]:
    return [random.Random(seed).sample(records, len(records)) for seed in range(10)]


FIRST, LAST = both(10), both(500)

AGAIN = both(10, "2")


@pytest.mark.parametrize(
    ("published", "wanted", "expected"),
    [
        ([*FIRST, *LAST], Wanted(ID), LAST),
        ([*FIRST, LAST[0]], Wanted(ID), (LAST[0], None)),
        ([*FIRST, *AGAIN], Wanted(seq=10), AGAIN),
        ([*FIRST, AGAIN[0]], Wanted(seq=10), (AGAIN[0], None)),
        ([*LAST, AGAIN[0]], Wanted(ID), (AGAIN[0], None)),
        ([*FIRST, LAST[0]], Wanted(seq=10), FIRST),
        ([FIRST[0], LAST[1]], Wanted(ID), (None, LAST[1])),
    ],
)
def test_reasons_and_prediction_are_of_the_same_observation_the_newest(
    published: list[Prediction | Reasons],
    wanted: Wanted,
    expected: tuple[Prediction | None, Reasons | None],
) -> None:
    for records in orders(published):
        found = find_reasons(records, wanted)
        assert found.prediction == expected[0]
        assert found.reasons == [each for each in expected[1:] if each is not None]


def test_reasons_of_an_earlier_observation_are_known_too() -> None:
    other = both(250)
    for records in orders([*FIRST, *other, LAST[0]]):
        assert find_reasons(records, Wanted(ID)).earlier == other[1]
    assert find_reasons([*LAST, LAST[0]], Wanted(ID)).earlier is None


def test_a_prediction_with_a_late_label_is_not_that_of_the_observation() -> None:
    late = replace(prediction(700), id=ID, observation=500, first_prediction=True)
    assert find_reasons([*LAST, late], Wanted(ID))[:2] == ([LAST[1]], LAST[0])


def test_each_label_has_a_record() -> None:
    other = replace(LAST[1], label=False)
    for records in orders([*FIRST, *LAST, other]):
        found = find_reasons(records, Wanted(ID)).reasons
        assert sorted(found, key=str) == sorted([LAST[1], other], key=str)


def elsewhere(seq: int, stream: str, ts: Timestamp | None) -> tuple[Prediction, Reasons]:
    """Return prediction and reasons of an observation of a stream."""
    one, other = both(seq)
    return replace(one, stream=stream, ts=ts), replace(other, stream=stream, ts=ts)


@pytest.mark.parametrize(
    ("early", "late"),
    [
        (1000, 2000.5),
        ("2026-03-01T00:30:00+02:00", "2026-02-28T23:00:00Z"),
        ("2026-02-28", "2026-03-01"),
    ],
)
def test_of_several_streams_the_latest_observation_is_the_newest(
    early: Timestamp, late: Timestamp
) -> None:
    first = elsewhere(3, "features-2", early)
    last = elsewhere(900, "features-10", late)
    for records in orders([*first, *last]):
        assert find_reasons(records, Wanted(ID)) == ([last[1]], last[0], first[1])
        assert find_reasons(records, Wanted(ID, "features-2")) == ([first[1]], first[0], None)


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, None), (5, 5), (5, None), (5, "6"), ("a", "b"), ("2026-03-01", "2026-03-02T00:00Z")],
)
def test_streams_without_comparable_times_are_listed(
    one: Timestamp | None, other: Timestamp | None
) -> None:
    published: list[Prediction | Reasons] = [
        *elsewhere(900, "features-10", one),
        *elsewhere(3, "features-2", other),
    ]
    for records in orders(published):
        with pytest.raises(ConfigError, match=r"features-2, features-10; .* --stream"):
            find_reasons(records, Wanted(ID))


@pytest.mark.parametrize("asked", ["40", "40.0", "4e1"])
def test_an_id_that_is_a_number_is_compared_by_value(asked: str) -> None:
    for id_ in (40, 40.0):
        assert find_reasons([replace(LAST[1], id=id_)], Wanted(asked)).reasons
    for other in (41, "040", "4"):
        assert not find_reasons([replace(LAST[1], id=other)], Wanted(asked)).reasons
