"""Reads the log with plain fetch requests, where Kafka's clients report too little.

librdkafka stops for ever at a batch that it cannot unpack, without its end. All functions take the
settings of a broker that answers, a full topic name, a partition, an offset, and a timeout in
seconds; they raise ``KafkaException`` if no answer comes in time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import NoError, OffsetOutOfRangeError, for_code
from aiokafka.partitioner import murmur2 as murmur2  # noqa: PLC0414  for the producer
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition
from confluent_kafka import KafkaError, KafkaException

from fluxplain.config import Config
from fluxplain.kafka.driver import Received
from fluxplain.kafka.faust.connections import connection_settings
from fluxplain.kafka.faust.fetch import PartitionRecords, RecordSet

ONE_BATCH = 1
"""Bytes to request for a single batch: a broker sends at least one whole batch."""

READ_BYTES = 1024 * 1024
"""Bytes to request at a time when reading on; a larger batch comes alone."""

RETRY_S = 0.1


def first_offset(
    config: Config, topic: str, partition: int, offset: int, timeout_s: float
) -> int | None:
    """Return the offset of the first message from an offset on; None if there is none.

    Compaction and transactions leave offsets without a message.
    """
    found: list[int] = []

    def take(message: Received) -> bool:
        found.append(message.offset)
        return False

    read_on(config, topic, partition, offset, timeout_s, take, most_bytes=ONE_BATCH)
    return found[0] if found else None


def read_on(  # noqa: PLR0917 — position and callback
    config: Config,
    topic: str,
    partition: int,
    offset: int,
    timeout_s: float,
    take: Callable[[Received], bool],
    *,
    most_bytes: int = READ_BYTES,
) -> int | None:
    """Read a log up to its end, within the bounds of :mod:`fluxplain.kafka.faust.batches`.

    ``take`` is called with each message, and returns whether to continue; an unreadable one has
    :class:`~fluxplain.kafka.headers.Unreadable` headers. Returns the offset to continue from; None
    if the log ends before the offset, or begins after it.
    """
    tp = TopicPartition(topic, partition)

    async def read(client: Any) -> int:
        at = offset
        while True:
            answer = await _fetched(client, tp, at, most_bytes)
            # no deserializers, with checksums
            reading = (answer.records, answer.aborted, at, None, None, True, READ_COMMITTED)
            records = PartitionRecords(tp, *reading)
            for message in records:
                if not take(_in_seconds(message)):
                    return records.next_fetch_offset
            at = max(records.next_fetch_offset, at)
            if at >= answer.end:
                return at

    return _ask(config, timeout_s, read)


def _in_seconds(record: Any) -> Received:
    """Return a record of aiokafka with its timestamp in seconds, as Faust has it."""
    timestamp = None if record.timestamp is None else record.timestamp / 1000.0
    received: Received = replace(record, timestamp=timestamp)
    return received


def batch_end(config: Config, topic: str, partition: int, offset: int, timeout_s: float) -> int:
    """Return the first offset after the batch that holds an offset."""

    async def read(client: Any) -> int:
        while True:
            answer = await _fetched(client, TopicPartition(topic, partition), offset, ONE_BATCH)
            if answer.records.has_next():
                return answer.records.next_batch().next_offset
            if offset >= answer.end:
                return offset

    return max(_ask(config, timeout_s, read) or 0, offset + 1)


class _Answer(NamedTuple):
    """Fetched batches, their aborted transactions, and the offset at which readers must stop."""

    end: int
    aborted: list[tuple[int, int]] | None
    records: RecordSet


def _ask(
    config: Config, timeout_s: float, read: Callable[[Any], Coroutine[Any, Any, int]]
) -> int | None:
    async def ask() -> int:
        async with asyncio.timeout(timeout_s), _client(config) as client:
            return await read(client)

    try:
        return asyncio.run(ask())
    except OffsetOutOfRangeError:
        return None
    except (ClientError, TimeoutError, OSError) as error:
        code = getattr(error, "errno", None) if isinstance(error, ClientError) else None
        raise KafkaException(KafkaError(code or KafkaError._TIMED_OUT)) from None


@asynccontextmanager
async def _client(config: Config) -> AsyncIterator[Any]:
    client = AIOKafkaClient(**connection_settings(config.kafka))
    try:
        while True:
            try:
                await client.bootstrap()
                break
            except ClientError:  # no broker answers yet
                await asyncio.sleep(RETRY_S)
        yield client
    finally:
        await client.close()


async def _fetched(client: Any, tp: TopicPartition, offset: int, most_bytes: int) -> _Answer:
    """Return the batches from an offset on, if any; retries while a leader is elected."""
    asked = [(tp.topic, [(tp.partition, offset, most_bytes)])]
    # without waiting for more data
    request = FetchRequest(0, 1, most_bytes, READ_COMMITTED, asked)
    while True:
        try:
            await client.set_topics([tp.topic])
            leader = client.cluster.leader_for_partition(tp)
            if leader is not None and leader >= 0:
                answer = await client.send(leader, request)
                ((_, ((_, code, _, end, *_rest, aborted, content),)),) = _plain(answer)
                error = for_code(code)
                if error is NoError:
                    return _Answer(end, aborted, RecordSet(content))
                raise error
        except ClientError as error:
            if not error.retriable:
                raise
        await asyncio.sleep(RETRY_S)
        with suppress(ClientError):
            await client.force_metadata_update()


def _plain(answer: Any) -> Any:
    """Return the topics of an answer in the form of Fetch version 4."""
    if answer.API_VERSION < 11:
        return answer.topics
    # later versions have a preferred replica before the last field
    return [(topic, [(*p[:-2], p[-1]) for p in partitions]) for topic, partitions in answer.topics]
