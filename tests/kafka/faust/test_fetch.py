"""A broker's answer is unpacked in bounded pieces, without aborted transactions."""

import struct
import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer import consumer
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED
from aiokafka.consumer.fetcher import Fetcher as TheirFetcher
from aiokafka.consumer.fetcher import PartitionRecords as TheirRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.faust import fetch
from fluxplain.kafka.faust.batches import CONTROL, TRANSACTIONAL
from fluxplain.kafka.faust.fetch import (
    DRAIN,
    IDLE_MAX_WAIT_MS,
    LARGE_BYTES,
    MAX_DRAINED_BYTES,
    Fetcher,
    PartitionRecords,
    RecordSet,
)
from tests.kit import batches as kit
from tests.kit.batches import NONE, ZSTD
from tests.kit.support import PROPERTY

TP = TopicPartition("features", 0)


OURS: tuple[Any, Any] = (PartitionRecords, RecordSet)
THEIRS: tuple[Any, Any] = (TheirRecords, MemoryRecords)


def read(
    by: tuple[Any, Any], content: bytes, start: int = 0, aborted: Sequence[tuple[int, int]] = ()
) -> list[Any]:
    """Return the messages and the next offset, by our classes or by aiokafka's."""
    partition_records, record_set = by
    records = partition_records(
        TP, record_set(content), list(aborted), start, None, None, True, READ_COMMITTED
    )
    return [*(tuple(vars(each).values()) for each in records), records.next_fetch_offset]


def marker(offset: int, producer: int, kind: int) -> kit.Batch:
    """Return what the broker writes at the end of a transaction: 0 aborts it, 1 commits it."""
    key = struct.pack(">hh", 0, kind)
    return kit.batch(
        [kit.record(0, bytes(6), key=key)],
        attributes=CONTROL | TRANSACTIONAL,
        base_offset=offset,
        producer_id=producer,
    )


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_messages_of_older_formats_are_dead_letters_by_their_offsets(
    magic: int, codec: int
) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 10_000)
    for offset in range(3):
        builder.append(offset, timestamp=5, key=b"k", value=b"v" * 50)
    content = bytearray(builder.build())
    if codec:
        struct.pack_into(">q", content, 0, 2)  # brokers give it the offset of its last message
    content += kit.batch([kit.record(0, b"new")], base_offset=3).encode()
    *old, last, behind = read(OURS, bytes(content))
    assert [(each[2], each[5], each[6]) for each in old] == [(i, None, None) for i in range(3)]
    reason = f"the record cannot be read: it is in Kafka's message format {magic}, of before 0.11"
    assert {each[10].reason for each in old} == {reason}
    assert (last[2], last[6], behind) == (3, b"new", 4)


PIECES = st.lists(
    st.tuples(
        st.integers(1, 4),  # records
        st.sampled_from([NONE, ZSTD]),
        st.sampled_from([-1, 7, 8]),  # who wrote it; -1 without a transaction
        st.sampled_from([None, 0, 1]),  # the end of the transaction after it: aborted, committed
    ),
    min_size=1,
    max_size=8,
)


@PROPERTY
@given(PIECES, st.integers(0, 20), st.integers(0, 40))
def test_transactions_and_starts_are_those_of_aiokafka(
    pieces: list[tuple[int, int, int, int | None]], start: int, cut: int
) -> None:
    content, offset, opened, aborted = b"", 0, dict[int, int](), list[tuple[int, int]]()
    for n, codec, producer, ending in pieces:
        if producer >= 0:
            opened.setdefault(producer, offset)
        records = [kit.record(i, b"%d" % (offset + i)) for i in range(n)]
        is_transactional = TRANSACTIONAL if producer >= 0 else 0
        content += kit.batch(
            records, codec, attributes=is_transactional, base_offset=offset, producer_id=producer
        ).encode()
        offset += n
        if producer >= 0 and ending is not None:
            content += marker(offset, producer, ending).encode()
            first = opened.pop(producer)
            if ending == 0:
                aborted.append((producer, first))
            offset += 1
    content = content[: len(content) - cut]  # brokers cut the last one off
    start %= pieces[0][0]  # the first batch is the one that was asked for
    assert read(OURS, content, start, aborted) == read(THEIRS, content, start, aborted)


def test_a_wrong_checksum_is_an_error() -> None:
    content = bytearray(kit.batch([kit.record(0, b"value")]).encode())
    content[-3] ^= 1
    with pytest.raises(CorruptRecordException):
        read(OURS, bytes(content))


def test_the_bytes_of_an_answer_are_freed_without_the_garbage_collector() -> None:
    reading = result(kit.batch([kit.record(0, b"value")]).encode())
    records = weakref.ref(reading._partition_records)
    assert len(reading.getall()) == 1
    del reading
    assert records() is None


class Assigned:
    """An assignment of one partition that is read without a break."""

    active = True
    paused = False

    def __init__(self) -> None:
        self.position = 0

    def state_value(self, _tp: TopicPartition) -> "Assigned":
        return self

    def consumed_to(self, position: int) -> None:
        self.position = position


def result(content: bytes) -> fetch.FetchResult:
    records = PartitionRecords(TP, RecordSet(content), [], 0, None, None, True, READ_UNCOMMITTED)
    return fetch.FetchResult(TP, partition_records=records, assignment=Assigned(), backoff=0.1)


def drains(content: bytes, most: int | None = None) -> list[list[int]]:
    """Return the offsets that each call returns, and check that each is bounded."""
    reading, found = result(content), []
    while reading.has_more():
        DRAIN.begin()
        messages = reading.getall(most)
        sizes = [len(message.value or b"") for message in messages]
        assert sum(sizes[:-1]) < MAX_DRAINED_BYTES
        found.append([message.offset for message in messages])
    return [each for each in found if each]


def test_one_call_returns_a_bounded_number_of_bytes() -> None:
    values = [bytes(1_000_000)] * 20
    content = kit.batch([kit.record(i, value) for i, value in enumerate(values)]).encode()
    assert drains(content) == [list(range(i, i + 5)) for i in range(0, 20, 5)]
    assert drains(content, most=2) == [[i, i + 1] for i in range(0, 20, 2)]


def test_one_call_unpacks_one_bomb() -> None:
    bomb = kit.batch([kit.record(0, bytes(40_000_000))], ZSTD)
    content = b"".join(kit.Batch(bomb.payload, 1, ZSTD, base_offset=i).encode() for i in range(4))
    assert drains(content) == [[0], [1], [2], [3]]


def test_one_large_batch_is_held_and_the_others_are_unpacked_again() -> None:
    values = [bytes([i]) * 1_000_000 for i in range(12)]
    content = kit.batch([kit.record(i, v) for i, v in enumerate(values)], ZSTD).encode()
    readers = [result(content) for _ in range(3)]
    seen: list[list[bytes | None]] = [[], [], []]
    while any(reader.has_more() for reader in readers):
        for reader, values_seen in zip(readers, seen, strict=True):
            DRAIN.begin()
            values_seen += [message.value for message in reader.getall(1)]
            held = [
                each
                for each in readers
                if each._partition_records is not None
                and each._partition_records._unpacked is not None
            ]
            assert len(held) <= 1
    assert seen == [values] * 3
    assert sum(map(len, values)) > LARGE_BYTES


@pytest.mark.parametrize("assigned", [2, 3])
def test_only_a_request_for_all_partitions_may_wait_longer(
    assigned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the partition that is left out, since it is busy, would wait for it."""
    requests = [FetchRequest(20, 1, 1, 1, [("features", [(i, 0, 1)])]) for i in range(2)]
    actions: Any = (list(enumerate(requests)), {}, 0, False, [])
    monkeypatch.setattr(TheirFetcher, "_get_actions_per_node", lambda *_: actions)
    assignment = SimpleNamespace(tps=[TopicPartition("features", i) for i in range(assigned)])
    assert Fetcher.__new__(Fetcher)._get_actions_per_node(assignment) == actions
    expected = IDLE_MAX_WAIT_MS if assigned == 2 else 20
    assert [request._max_wait_ms for request in requests] == [expected] * 2


def test_the_consumer_fetches_with_these_classes() -> None:
    fetch.install()
    assert consumer.Fetcher is Fetcher
