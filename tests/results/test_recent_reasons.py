"""The newest reasons of a stream: which are kept, replaced and dropped."""

from dataclasses import replace
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.results.recent_reasons import MAX_OBSERVATIONS, RecentReasons
from fluxplain.schemas import Reasons
from tests.kit.records import reasons
from tests.kit.support import PROPERTY

ROOM = 1_000_000


def kept(*records: Reasons, most: int = ROOM) -> RecentReasons:
    known = RecentReasons()
    for version, record in enumerate(records, 1):
        known.add(record, version=version, most=most)
    return known


def seqs(known: RecentReasons) -> list[int]:
    return [Reasons.decode(texts[0]).seq for texts in known.latest_first()]


def test_the_newest_observations_are_kept_also_if_older_ones_are_repeated() -> None:
    published = [reasons(seq) for seq in range(MAX_OBSERVATIONS + 50)]
    known = kept(*published, *published[100:])
    assert seqs(known) == [*range(MAX_OBSERVATIONS + 49, 49, -1)]
    assert known.size == sum(len(each.encode()) for each in published[50:])


def test_an_observation_has_one_record_for_each_label() -> None:
    published = [reasons(7, label=label) for label in (True, False)]
    known = kept(*published, published[0])
    assert [Reasons.decode(text) for text in known.of(7)] == published
    assert known.of(8) == []


def test_a_newer_incarnation_replaces_all_labels_of_an_older_one() -> None:
    old, other = reasons(7), reasons(7, label=False)
    new = replace(old, incarnation="2", output=0.1)
    known = kept(old, other, new, other)
    assert [Reasons.decode(text) for text in known.of(7)] == [new]
    assert (known.size, known.version) == (len(new.encode()), 3)


def test_after_a_restart_from_the_logs_beginning_those_of_the_new_incarnation_are_kept() -> None:
    old = [reasons(seq) for seq in range(1000, 1300)]
    new = [replace(reasons(seq), incarnation="2") for seq in range(100, 250)]
    known = kept(*old, *new)
    assert seqs(known) == [*range(249, 99, -1), *range(1299, 1249, -1)]
    late = kept(*new, *old)
    assert late.latest_first() == known.latest_first(), "also if those of another partition follow"
    all_new = [replace(reasons(seq), incarnation="2") for seq in range(100, 300)]
    assert seqs(kept(*old, *all_new)) == [*range(299, 99, -1)]
    room = 5 * len(old[0].encode())
    assert seqs(kept(*old, *new, most=room)) == [*range(249, 244, -1)]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(1, 600)), max_size=80))
@settings(PROPERTY, max_examples=40)
def test_all_reasons_never_take_more_than_their_room(added: list[tuple[int, bool, int]]) -> None:
    known = RecentReasons()
    for seq, label, length in added:
        known.add(replace(reasons(seq, label=label), id="x" * length), version=1, most=3_000)
        assert known.size == sum(map(len, chain(*known.latest_first()))) <= 3_000
