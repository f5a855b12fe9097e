"""Record batches are read as aiokafka does if valid, and within bounds whatever is in them."""

import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.faust import batches
from fluxplain.kafka.faust.batches import (
    MAX_BATCH_BYTES,
    MAX_HEADERS,
    MAX_MESSAGE_BYTES,
    BatchRecord,
    FlawError,
)
from fluxplain.kafka.headers import Unreadable
from tests.kit import batches as kit
from tests.kit.batches import CODECS, GZIP, LZ4, NONE, SNAPPY, ZSTD
from tests.kit.support import PROPERTY

every_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))

BLOBS = st.none() | st.binary(max_size=40)
NAMES = st.text(max_size=8).map(str.encode)
INT64 = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.lists(
    st.tuples(BLOBS, BLOBS, st.lists(st.tuples(NAMES, BLOBS), max_size=4), INT64), max_size=12
)


def batch_of(encoded: bytes) -> batches.Batch:
    return batches.Batch.of(memoryview(encoded))


def read(encoded: bytes) -> list[BatchRecord]:
    """Return the record of each offset as a consumer gets them."""
    batch = batch_of(encoded)
    try:
        return plain(batch.records(batch.unpacked()))
    except FlawError as error:
        return list(batch.unreadable(str(error), batch.base_offset))


def plain(records: Iterable[Any]) -> list[BatchRecord]:
    """Return records as those of our own parser."""
    return [
        BatchRecord(
            each.offset,
            each.timestamp,
            each.timestamp_type,
            each.key,
            each.value,
            each.headers if isinstance(each.headers, tuple) else tuple(each.headers),
        )
        for each in records
    ]


def parsed(encoded: bytes) -> list[BatchRecord]:
    """Return the records of our own parser, without aiokafka's."""
    batch = batch_of(encoded)
    return list(batch._parsed(batch.unpacked(), 0, batch.base_offset))


def reasons(records: Sequence[BatchRecord]) -> list[str | None]:
    """Return why each record cannot be read; None for one that can."""
    return [r.headers.reason if isinstance(r.headers, Unreadable) else None for r in records]


@PROPERTY
@given(RECORDS, st.sampled_from(sorted(CODECS.values())), INT64, INT64, st.booleans())
def test_valid_batches_are_read_as_by_aiokafka(
    rows: list[tuple[bytes | None, bytes | None, list[kit.Header], int]],
    codec: int,
    base: int,
    latest: int,
    is_log_time: bool,
) -> None:
    encoded = kit.batch(
        [
            kit.record(i, value, key=key, headers=headers, timestamp_delta=delta)
            for i, (key, value, headers, delta) in enumerate(rows)
        ],
        codec,
        attributes=0x08 * is_log_time,
        base_offset=1_000,
        base_timestamp=base,
        max_timestamp=latest,
    ).encode()
    expected = [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, tuple(r.headers))
        for r in DefaultRecordBatch(encoded)
    ]
    assert batch_of(encoded).has_valid_crc
    assert [tuple(record) for record in read(encoded)] == expected
    assert parsed(encoded) == read(encoded)


def test_the_compiled_parser_is_there() -> None:
    assert DefaultRecordBatch is not _DefaultRecordBatchPy


BODIES = st.binary(max_size=60) | RECORDS.map(
    lambda rows: b"".join(
        kit.record(i, value, key=key, headers=headers)
        for i, (key, value, headers, _) in enumerate(rows)
    )
)


@PROPERTY
@given(
    BODIES,
    st.sampled_from(range(8)),
    st.booleans(),
    st.integers(-2, 15),
    st.integers(-2, 15),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
)
def test_arbitrary_bytes_give_at_most_one_record_per_offset(
    body: bytes,
    codec: int,
    is_packed: bool,
    count: int,
    last_delta: int,
    changes: list[tuple[int, int]],
) -> None:
    payload = bytearray(kit.compressed(body, codec) if is_packed else body)
    for at, byte in changes:
        if payload:
            payload[at % len(payload)] = byte
    encoded = kit.Batch(
        bytes(payload), count, codec, last_delta=last_delta, base_offset=50
    ).encode()
    offsets = [record.offset for record in read(encoded)]
    assert offsets == sorted(set(offsets))
    assert all(50 <= offset < batch_of(encoded).next_offset for offset in offsets)
    if count == last_delta + 1 and count > 0:  # dense, as before compaction
        assert offsets == list(range(50, 50 + count))
    batch = batch_of(encoded)
    try:
        unpacked = batch.unpacked()
    except FlawError:
        return
    # the compiled parser changes nothing
    assert plain(batch.records(unpacked)) == list(batch._parsed(unpacked, 0, batch.base_offset))


@every_codec
def test_a_header_whose_name_is_not_utf_8_is_dropped_and_the_others_are_there(codec: int) -> None:
    headers = [(b"a", b"1"), (b"\xff\xfe", b"2"), (b"\xed\xa0\x80", b"3"), (b"", None)]
    encoded = kit.batch(
        [kit.record(0, b"x"), kit.record(1, b"y", headers=headers), kit.record(2, b"z")], codec
    ).encode()
    records = read(encoded)
    assert [record.value for record in records] == [b"x", b"y", b"z"]
    assert records[1].headers == (("a", b"1"), ("", None))


BROKEN = {
    "the name of a header is null": kit.record(1, b"x", headers=[(None, b"1")]),
    "fewer headers than its count": kit.record(1, b"x", header_count=1),
    "a huge count of headers": kit.record(1, b"x", header_count=2**31 - 1),
    "a negative count of headers": kit.record(1, b"x", header_count=-1),
    "more headers than its count": kit.record(1, b"x", headers=[(b"a", b"1")] * 2, header_count=1),
    "the offset is another": kit.record(7, b"x"),
    "the offset of the record before": kit.record(0, b"x"),
    "a number without end": kit.varint(13) + b"\x00" + b"\xff" * 12,
    "a key beyond the record": kit.varint(6) + b"\x00\x00\x02" + kit.varint(999) + b"\x00",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
@every_codec
def test_a_broken_record_is_unreadable_and_the_next_is_read(codec: int, broken: bytes) -> None:
    encoded = kit.batch([kit.record(0, b"a"), broken, kit.record(2, b"c")], codec).encode()
    records = read(encoded)
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.value for record in records] == [b"a", None, b"c"]
    assert [reason is None for reason in reasons(records)] == [True, False, True]
    assert parsed(encoded) == records


def test_what_follows_a_length_beyond_the_batch_is_unreadable() -> None:
    encoded = kit.batch([kit.record(0, b"a"), kit.varint(10**6), kit.record(2, b"c")]).encode()
    first, *others = reasons(read(encoded))
    assert first is None
    assert others == ["the record cannot be read: its length goes beyond its batch"] * 2


def test_a_compacted_batch_gives_the_remaining_records() -> None:
    records = [kit.record(delta, b"v") for delta in (1, 4, 5)]
    encoded = kit.batch(records, last_delta=9, base_offset=10).encode()
    assert [record.offset for record in read(encoded)] == [11, 14, 15]
    empty = kit.Batch(b"", 0, last_delta=9, base_offset=10).encode()
    assert (read(empty), batch_of(empty).next_offset) == ([], 20)


GOOD, NEXT = kit.record(0, b"x"), kit.record(1, b"y")
UNPACKED = {
    "snappy of Java": kit.Batch(kit.xerial(GOOD), 1, SNAPPY),
    "gzip with something behind": kit.Batch(kit.compressed(GOOD, GZIP) + b"xyz", 1, GZIP),
    **{
        f"{name} in two parts": kit.Batch(
            kit.compressed(GOOD, codec) + kit.compressed(NEXT, codec), 2, codec
        )
        for name, codec in CODECS.items()
        if codec in {GZIP, LZ4, ZSTD}
    },
}
SPOILED = {
    "an unknown compression": kit.Batch(GOOD, 3, 5),
    "no zstd": kit.Batch(b"no zstd", 3, ZSTD),
    "lz4 that breaks off": kit.Batch(kit.compressed(GOOD, LZ4)[:-3], 3, LZ4),
    "gzip that breaks off": kit.Batch(kit.compressed(GOOD, GZIP)[:-3], 3, GZIP),
    "no gzip": kit.Batch(b"", 3, GZIP),
    "snappy that lies about its size": kit.Batch(b"\xff\xff\xff\xff\x0f" + b"\x00", 3, SNAPPY),
    "snappy of Java that breaks off": kit.Batch(kit.xerial(GOOD)[:-1], 3, SNAPPY),
    "snappy of Java with a negative block": kit.Batch(kit.XERIAL + b"\xff" * 4, 3, SNAPPY),
}


@pytest.mark.parametrize("name", [*UNPACKED, *SPOILED])
def test_a_batch_is_unpacked_as_brokers_do_or_each_offset_has_the_reason(name: str) -> None:
    batch = UNPACKED.get(name) or SPOILED[name]
    records = read(batch.encode())
    is_good = name in UNPACKED
    assert [r.value for r in records] == ([b"x", b"y"][: batch.count] if is_good else [None] * 3)
    assert len(set(reasons(records))) == 1
    assert (reasons(records)[0] is None) == is_good


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_at_the_bound_is_read_and_one_beyond_it_is_not(
    codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_BYTES", 10_000)
    at = kit.record(0, bytes(10_000 - len(kit.record(0, bytes(9_000))) + 9_000))
    assert len(at) == 10_000
    encoded = kit.batch([at], codec).encode()
    assert reasons(read(encoded)) == [None]
    beyond = kit.batch([at + b"x"], codec).encode()
    [reason] = reasons(read(beyond))
    assert reason is not None
    assert "10,000 bytes" in reason


def bomb(codec: int) -> bytes:
    return kit.batch([kit.record(0, bytes(4 * MAX_BATCH_BYTES))], codec).encode()


def bomb_in_parts(codec: int) -> bytes:
    part = bytes(MAX_BATCH_BYTES // 16)
    whole = kit.xerial(part) if codec == SNAPPY else kit.compressed(part, codec)
    more = whole[len(kit.XERIAL) :] if codec == SNAPPY else whole
    return kit.Batch(whole + more * 60, 1, codec).encode()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("make", [bomb, bomb_in_parts])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_not_unpacked(codec: int, make: type) -> None:
    encoded = make(codec)
    tracemalloc.start()
    try:
        [reason] = reasons(read(encoded))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reason is not None
    assert "cannot be unpacked" in reason
    assert peak < 2 * MAX_BATCH_BYTES + len(encoded)


@every_codec
def test_a_message_that_is_too_large_is_unreadable_and_its_neighbours_are_read(codec: int) -> None:
    values = [b"a", bytes(MAX_MESSAGE_BYTES), bytes(MAX_MESSAGE_BYTES + 1), b"d"]
    encoded = kit.batch([kit.record(i, value) for i, value in enumerate(values)], codec).encode()
    assert [record.value for record in read(encoded)] == [*values[:2], None, b"d"]
    assert reasons(read(encoded))[2] == (
        "the message has 1,048,577 bytes, but must have at most 1,048,576"
    )
    assert parsed(encoded) == read(encoded)


@pytest.mark.parametrize("name", [b"a", b"\xff"])
def test_a_message_with_too_many_headers_is_unreadable(name: bytes) -> None:
    def of(n: int) -> bytes:
        return kit.batch([kit.record(0, b"x", headers=[(name, b"")] * n)], NONE).encode()

    assert reasons(read(of(MAX_HEADERS))) == [None]
    [reason] = reasons(read(of(50_000)))
    assert reason == "the message has 50,000 headers, but must have at most 2,000"
    assert parsed(of(50_000)) == read(of(50_000))
