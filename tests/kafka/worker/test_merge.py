"""Merge yields the messages of joined topics in the order of their timestamps."""

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.driver import Driver
from fluxplain.kafka.worker.merge import MOST_HELD, MOST_HELD_BYTES, PATIENCE_S, Merge
from fluxplain.kafka.worker.partition import AssignedPartition, Assignment
from fluxplain.stages import JoinStage
from fluxplain.stages.limits import HEADER_MEMORY_BYTES
from tests.kit.support import PROPERTY


@dataclass(slots=True)
class Read:
    topic: str
    partition: int
    offset: int
    timestamp: float | None
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Log:
    """Two topics, partly read; takes the messages that are ready."""

    def __init__(self, **times: list[float | None]) -> None:
        self.messages = {
            topic: [Read(topic, 0, offset, time) for offset, time in enumerate(each)]
            for topic, each in times.items()
        }
        self.assignment = Assignment()
        for topic in times:
            self.assignment.add(AssignedPartition(Slot("join", topic, 0), JoinStage(), 0, 0, 0))
        self.paused: set[str] = set()
        self.taken: list[Any] = []
        self.merge = Merge(list(self.messages), self.assignment, cast(Driver, self))

    def pause(self, tp: TopicPartition) -> None:
        self.paused.add(tp.topic)

    def resume(self, tp: TopicPartition) -> None:
        self.paused.discard(tp.topic)

    def log_end(self, tp: TopicPartition) -> int:
        return len(self.messages[tp.topic])

    def read(self, topic: str, n: int, *, now: float = 0.0, begin: int = 0) -> None:
        for message in self.messages[topic][begin : begin + n]:
            self.merge.put(message)
        self.take(now)

    def take(self, now: float = 0.0) -> None:
        for message in self.merge.ready(now):
            self.taken.append(message)
            partition = self.assignment.get(message.topic, 0)
            assert partition
            partition.next_offset = message.offset + 1

    @property
    def order(self) -> list[tuple[str, int]]:
        return [(each.topic, each.offset) for each in self.taken]


@pytest.mark.parametrize(
    ("times", "order"),
    [
        ({"f": [1.0, 1.0], "g": [1.0]}, ["f", "f", "g"]),
        ({"f": [5.0], "g": [None]}, ["g", "f"]),
        ({"f": [1.0, 2.0], "g": []}, ["f", "f"]),
    ],
    ids=["the same time", "without a time", "at the end of a topic"],
)
def test_without_an_order_of_timestamps_that_of_the_topics_counts(
    times: dict[str, list[float | None]], order: list[str]
) -> None:
    log = Log(**times)
    for topic in ("g", "f"):
        log.read(topic, 2)
    assert [topic for topic, _ in log.order] == order


def test_a_message_that_never_comes_is_awaited_once() -> None:
    """For example after an aborted transaction."""
    log = Log(f=[float(i) for i in range(10)], g=[0.5])
    log.read("f", 1, now=10.0)
    assert not log.taken
    log.take(now=10.0 + PATIENCE_S / 2)
    assert not log.taken
    log.take(now=10.0 + PATIENCE_S)
    assert len(log.taken) == 1
    log.read("f", 9, begin=1, now=10.0 + PATIENCE_S)
    assert len(log.taken) == 10


def test_a_topic_that_is_read_again_has_waited_as_long_as_before() -> None:
    log = Log(f=[1.0], g=[2.0])
    log.read("f", 1)
    assert not log.taken
    log.merge.forget(TopicPartition("g", 0))
    log.take(PATIENCE_S)
    assert log.order == [("f", 0)]


TENTH = bytes(MOST_HELD_BYTES // 10 - HEADER_MEMORY_BYTES)


@pytest.mark.parametrize(
    ("held", "content"),
    [
        (MOST_HELD - 1, {}),
        (10, {"value": TENTH}),
        (10, {"key": TENTH}),
        (10, {"headers": (("name", TENTH),)}),
        (0, {"value": bytes(2 * MOST_HELD_BYTES)}),
    ],
    ids=["number", "values", "keys", "headers", "one message above the limit"],
)
def test_the_messages_that_wait_for_another_topic_are_bounded(
    held: int, content: dict[str, Any]
) -> None:
    log = Log(f=[0.0, *[9e9] * 3], g=[float(i) for i in range(held + 10)])
    log.messages["g"] = [replace(each, **content) for each in log.messages["g"]]
    log.read("g", held)
    assert not log.paused
    log.read("g", 1, begin=held)
    assert log.paused == {"g"}
    log.read("f", 2)
    assert not log.paused
    assert len(log.taken) == held + 2


def test_a_revocation_ends_the_messages_that_are_being_taken() -> None:
    log = Log(f=[float(i) for i in range(MOST_HELD)], g=[9e9, 9e9])
    log.read("f", MOST_HELD)
    assert log.paused == {"f"}
    for message in log.messages["g"]:
        log.merge.put(message)
    for i, taken in enumerate(log.merge.ready(0.0)):
        log.taken.append(taken)
        if i == 10:
            log.merge.clear()
            log.merge.put(log.messages["f"][0])  # of the next assignment
    assert len(log.taken) == 11
    assert log.paused == {"f"}


def test_held_messages_are_dropped_with_their_partitions() -> None:
    log = Log(f=[1.0], g=[0.5])
    log.read("f", 1)
    log.merge.clear()
    log.read("g", 1)
    log.take(now=PATIENCE_S)
    assert log.order == [("g", 0)]


@PROPERTY
@given(
    st.lists(st.floats(0, 100), max_size=20).map(sorted),
    st.lists(st.floats(0, 100), max_size=20).map(sorted),
    st.lists(st.tuples(st.sampled_from("fg"), st.integers(1, 5)), max_size=60),
)
def test_messages_come_in_the_order_of_their_timestamps_however_they_are_read(
    f: list[float], g: list[float], reads: list[tuple[str, int]]
) -> None:
    log = Log(f=[*f], g=[*g])
    read = {"f": 0, "g": 0}
    for topic, n in [*reads, ("f", 20), ("g", 20)]:
        log.read(topic, n, begin=read[topic])
        read[topic] += n
    times = [each.timestamp for each in log.taken]
    assert times == sorted([*f, *g])
