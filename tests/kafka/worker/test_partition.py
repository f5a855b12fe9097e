"""Which message is the next one of a partition, whatever was fetched before a seek."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.worker.partition import SEEK_AGAIN_S, AssignedPartition
from fluxplain.stages import DriftStage
from tests.kit.settings import SETTINGS
from tests.kit.support import PROPERTY

STAGE = DriftStage(Config(**SETTINGS))


def assigned(next_offset: int) -> AssignedPartition:
    return AssignedPartition(Slot("drift", "explanations", 0), STAGE, next_offset, 0, 0)


@pytest.fixture
def partition() -> AssignedPartition:
    return assigned(150)


def deliver(log: list[int], start: int, stale: list[int]) -> list[int]:
    """Return the offsets done when stale messages come before those after the seek."""
    partition, done, seeks = assigned(start), [], 0
    queue = list(stale) + [offset for offset in log if offset >= start]
    while queue:
        offset = queue.pop(0)
        if not partition.accepts(offset):
            if partition.must_seek(offset, now=0.0):
                seeks += 1
                # what was fetched before the seek still comes first
                queue += [offset for offset in log if offset >= start]
        elif offset >= partition.next_offset:
            done.append(offset)
            partition.next_offset = offset + 1
    assert seeks <= 2, "seeks must end"
    return done


@PROPERTY
@given(
    log=st.sets(st.integers(0, 60), min_size=1).map(sorted),
    start=st.integers(0, 60),
    ahead=st.integers(0, 40),
    n=st.integers(0, 10),
)
def test_every_message_from_the_checkpoint_on_is_done_once_and_in_order(
    log: list[int], start: int, ahead: int, n: int
) -> None:
    stale = [offset for offset in log if offset >= start + ahead][:n]
    assert deliver(log, start, stale) == [offset for offset in log if offset >= start]


def test_a_log_that_loses_its_beginning_during_a_seek_is_read_on(
    partition: AssignedPartition,
) -> None:
    assert not partition.accepts(160)
    assert partition.must_seek(160, now=0.0)
    # 150 to 169 were deleted by now; or was 170 on its way before the seek?
    assert not partition.accepts(170)
    assert not partition.must_seek(170, now=0.1)
    assert not partition.must_seek_again(now=0.1)
    assert partition.must_seek_again(now=SEEK_AGAIN_S)
    assert not partition.accepts(170)
    assert partition.must_seek(170, now=SEEK_AGAIN_S)
    assert partition.accepts(170)
    assert not partition.must_seek_again(now=2 * SEEK_AGAIN_S)


def test_a_seek_is_repeated_until_its_message_comes(partition: AssignedPartition) -> None:
    assert not partition.must_seek_again(now=0.0)
    assert partition.accepts(150)
    partition.next_offset = 151
    partition.lost_step(now=0.0)
    for now in (SEEK_AGAIN_S, 2 * SEEK_AGAIN_S):
        assert partition.must_seek_again(now)
        assert not partition.must_seek_again(now)
    assert partition.accepts(151)
    assert not partition.must_seek_again(now=3 * SEEK_AGAIN_S)
