"""Which change is meant."""

from dataclasses import replace

import pytest

from fluxplain.results.lookup import UnknownChangeError, find, newest
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from tests.kit.records import change

CURVE = Curve(seq=1, grid=[0.0], effect=[1.0])


def known(change_id: str, seq: int, incident: str | None = None) -> Change:
    return replace(change("a", seq), id=change_id, incident=incident, curve_after=CURVE)


ONE = known("abcd00000001", 1, "features-0@1")
TWO = known("abcd00000002", 2, "features-0@1")
THREE = known("ffff00000003", 3, "features-0@3")
ALONE = known("123400000004", 4)
ALL = [THREE, ONE, ALONE, TWO]


@pytest.mark.parametrize("asked", ["ffff00000003", "ffff", "ffff000"])
def test_an_id_or_its_unique_beginning_finds_a_change(asked: str) -> None:
    found = find(ALL, asked)
    assert found.change == THREE  # with its curves
    assert [each.id for each in found.incident] == [THREE.id]


def test_a_change_comes_with_its_incident_in_order() -> None:
    found = find([*reversed(ALL), TWO], TWO.id)
    assert found.change == TWO
    assert [each.id for each in found.incident] == [ONE.id, TWO.id]
    assert found.incident[0].curve_after is None
    assert find(ALL, ALONE.id).incident == []


def test_an_incident_is_found_with_all_its_changes_whole() -> None:
    found = find(ALL, "features-0@1")
    assert found.change is None
    assert found.incident == [ONE, TWO]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("abcd", "2 changes begin with 'abcd': abcd00000001, abcd00000002"),
        ("ffff00000004", "no change 'ffff00000004'; the nearest are ffff00000003"),
        ("0000", "no change '0000'; the latest are 123400000004, ffff00000003, abcd00000002"),
        ("abc", "'abc' is no id of a change: give at least the first 4"),
        ("ABCD", "'ABCD' is no id of a change"),
        ("../../etc", "is no id of a change"),
        ("features-0@2", "no incident 'features-0@2'; the nearest are features-0@"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(asked: str, message: str) -> None:
    with pytest.raises(UnknownChangeError) as error:
        find(ALL, asked)
    assert message in str(error.value)


def test_where_there_is_nothing_that_is_told() -> None:
    for asked in ("abcd", "features-0@1"):
        with pytest.raises(UnknownChangeError, match=r"there (is|are) no"):
            find([], asked)


def test_the_newest_come_once_each_and_first() -> None:
    events = [change("a", seq) for seq in range(1000)]
    assert [each.seq for each in newest([*events, *events[::-1]], 3)] == [999, 998, 997]
    assert newest(events[:2], 3) == [events[1], events[0]]
    assert newest([], 3) == []
