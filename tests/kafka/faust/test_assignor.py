"""How partitions are distributed over the members of a group."""

from faust.assignor.client_assignment import CopartitionedAssignment
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.faust.assignor import FewestMoves


@st.composite
def assignments(draw: st.DrawFn) -> tuple[int, list[set[int]]]:
    """Return a number of partitions, and those that each member had."""
    partitions, members = draw(st.integers(1, 24)), draw(st.integers(1, 9))
    # an owner that is no member has left; a second owner was expelled, and does not know it yet
    owners = draw(st.lists(st.integers(-1, members - 1), min_size=partitions, max_size=partitions))
    had = [{p for p, owner in enumerate(owners) if owner == i} for i in range(members)]
    had[0] |= draw(st.sets(st.integers(0, partitions - 1), max_size=3))
    return partitions, had


@given(assignments())
def test_all_are_assigned_evenly_and_as_few_move_as_possible(
    case: tuple[int, list[set[int]]],
) -> None:
    partitions, had = case
    members = {
        f"m{i}": CopartitionedAssignment(actives=set(each), topics={"features"})
        for i, each in enumerate(had)
    }
    FewestMoves({"features"}, members, partitions, 0).get_assignment()
    has = [members[f"m{i}"].actives for i in range(len(had))]
    assert sorted(partition for each in has for partition in each) == [*range(partitions)]
    assert max(map(len, has)) - min(map(len, has)) <= 1
    kept = sum(len(before & after) for before, after in zip(had, has, strict=True))
    least, larger = divmod(partitions, len(had))
    shares = [least + (i < larger) for i in range(len(had))]
    once = [len(each) for each in had]
    if sum(once) == len(set().union(*had)):  # nobody claims another's
        most = sum(map(min, sorted(once, reverse=True), shares))
        assert kept == most
