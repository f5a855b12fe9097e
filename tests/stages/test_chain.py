"""Chains of numbered messages: what was seen, what was lost, and what comes late."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fluxplain.stages.chain import MAX_GAPS, Chain, Gap, Sight
from tests.kit.support import PROPERTY, pickled

Link = tuple[int, int | None]
"""A number, and its predecessor's."""


def links(numbers: list[int]) -> list[Link]:
    """Return the chain of some numbers."""
    return [
        (number, previous) for previous, number in pairwise([None, *numbers]) if number is not None
    ]


def read(chain: Chain, message: Link) -> tuple[Sight, Gap | None]:
    """Read a message as a stage does: take it unless it was seen."""
    number, previous = message
    sight = chain.see(number)
    return sight, None if sight is Sight.SEEN else chain.take(number, previous)


numbers = st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=30).map(sorted)


@PROPERTY
@given(numbers, st.integers(0, 10**6))
def test_of_writers_that_leave_only_prefixes_each_message_is_taken_once_and_in_order(
    whole: list[int], seed: int
) -> None:
    rng = random.Random(seed)
    chain, taken, log, written = Chain(), list[int](), list[Link](), 0
    writers: list[list[Link]] = []
    while written < len(whole):
        # the next owner begins no later than behind what its predecessors have written
        begin = rng.randint(0, written)
        writers.append(links(whole)[begin:])
        for _ in range(rng.randint(1, 12)):  # old owners wake up meanwhile
            writer = rng.choice(writers)
            if writer:
                log.append(writer.pop(0))
        written = max(written, *(whole.index(number) + 1 for number, _ in log))
    for message in log:
        sight, gap = read(chain, message)
        assert gap is None or message[1] is None, "only what is before the first is unknown"
        assert sight in {Sight.NEXT, Sight.SEEN}
        if sight is Sight.NEXT:
            taken.append(message[0])
    assert taken == whole


@PROPERTY
@given(numbers, st.integers(0, 10**6))
def test_whatever_is_lost_doubled_or_swapped_nothing_is_passed_over_that_was_not_taken(
    whole: list[int], seed: int
) -> None:
    rng = random.Random(seed)
    log = rng.choices(links(whole), k=3 * len(whole))
    chain, taken, gaps = Chain(), list[int](), list[Gap]()
    for message in log:
        sight, gap = read(chain, message)
        assert (sight is Sight.SEEN) == (message[0] in taken)
        assert (sight is Sight.LATE) == (
            message[0] not in taken and message[0] < max(taken, default=-1)
        )
        if sight is not Sight.SEEN:
            taken.append(message[0])
        if gap is not None:
            gaps.append(gap)
        chain = pickled(chain)
    for number in whole:
        lost = [gap for gap in gaps if gap.begin <= number < gap.end]
        assert len(lost) <= 1, "a gap is reported once"
        if number not in taken and number < max(taken):
            assert lost, "what is missing is reported"
    assert sorted(taken) == sorted(set(taken))


@PROPERTY
@given(numbers, st.integers(0, 10**6))
def test_what_comes_late_fills_its_gap(whole: list[int], seed: int) -> None:
    log = links(whole)
    random.Random(seed).shuffle(log)
    chain = Chain()
    for message in log:
        read(chain, message)
    assert all(chain.see(number) is Sight.SEEN for number in whole)
    # only what was before the first of all is left
    assert chain.gaps in ([], [Gap(0, whole[0])])


def test_gaps_are_bounded_and_of_those_that_are_forgotten_nothing_is_claimed() -> None:
    chain = Chain()
    for i in range(2 * MAX_GAPS):
        chain.take(10 * i + 9, 10 * i + 5)
    assert len(chain.gaps) == MAX_GAPS
    assert chain.see(9) is Sight.UNKNOWN
    assert chain.see(chain.forgotten) is Sight.SEEN or chain.see(chain.forgotten) is Sight.LATE
    assert chain.see(chain.gaps[0].begin) is Sight.LATE
    assert chain.see(chain.newest) is Sight.SEEN


def test_a_number_without_a_predecessor_leaves_a_gap_that_is_remembered() -> None:
    chain = Chain()
    assert chain.take(5, None) == Gap(0, 5)
    assert chain.see(3) is Sight.LATE
    assert chain.take(3, None) is None
    assert chain.gaps == [Gap(0, 3), Gap(4, 5)]
