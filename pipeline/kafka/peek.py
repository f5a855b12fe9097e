"""Looks at the log itself, where Kafka's clients say too little.

librdkafka unpacks a batch to say that there is one, and at a batch that it cannot unpack it stops
for ever, without saying where that batch ends.
"""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import NoError, OffsetOutOfRangeError, for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import ConsumerRecord, TopicPartition
from confluent_kafka import KafkaError, KafkaException

from pipeline.config import Config
from pipeline.kafka.fetch import PartitionRecords, RecordSet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Record: TypeAlias = "ConsumerRecord[bytes, bytes]"

MAX_WAIT_MS = 500
"""Longest time that a broker waits for more when there is nothing to send."""

READ_BYTES = 1024 * 1024
"""What a broker sends at once to who reads; a batch that is larger comes alone."""

RETRY_S = 0.1


def first_offset(
    config: Config, topic: str, partition: int, offset: int, timeout_s: float
) -> int | None:
    """Return the offset of the first message that is there from an offset on; None at the end.

    Offsets without a message are what compaction leaves, and transactions.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topic, partition, offset
        From where; the topic by its full name.
    timeout_s
        Seconds to wait for the answer.

    Raises
    ------
    KafkaException
        If it does not come.
    """

    place = TopicPartition(topic, partition)

    def look(answer: "_Answer", at: int) -> tuple[int | None, int | None]:
        records = answer.messages(place, at)
        message = next(records, None)
        if message is not None:
            return message.offset, None
        behind = records.next_fetch_offset
        return None, None if behind >= answer.end else behind

    return _ask(config, place, offset, timeout_s, look)


def read_on(  # noqa: PLR0917 — a place, and what to do there
    config: Config,
    topic: str,
    partition: int,
    offset: int,
    timeout_s: float,
    take: Callable[[Record], bool],
) -> int | None:
    """Read a log up to its end, within the bounds of :mod:`pipeline.kafka.batches`.

    Parameters
    ----------
    config, topic, partition, offset, timeout_s
        As for :func:`first_offset`.
    take
        Called with each message; returns whether to go on. One that cannot be read has headers that
        are :class:`~pipeline.kafka.batches.Unreadable`.

    Returns
    -------
    int | None
        Where to read on next time; None if the log does not reach to the offset, or begins behind
        it.

    Raises
    ------
    KafkaException
        If the answer does not come.
    """
    place = TopicPartition(topic, partition)

    def look(answer: "_Answer", at: int) -> tuple[int | None, int | None]:
        records = answer.messages(place, at)
        for message in records:
            if not take(message):
                return records.next_fetch_offset, None
        behind = max(records.next_fetch_offset, at)
        return (behind, None) if behind >= answer.end else (None, behind)

    return _ask(config, place, offset, timeout_s, look, wait_ms=0, most_bytes=READ_BYTES)


def batch_end(config: Config, topic: str, partition: int, offset: int, timeout_s: float) -> int:
    """Return the first offset behind the batch that holds an offset.

    Parameters
    ----------
    config, topic, partition, offset, timeout_s
        As for :func:`first_offset`.

    Raises
    ------
    KafkaException
        If the answer does not come.
    """

    def look(answer: "_Answer", at: int) -> tuple[int | None, int | None]:
        if answer.records.has_next():
            return answer.records.next_batch().next_offset, None
        return None, None if at >= answer.end else at

    end = _ask(config, TopicPartition(topic, partition), offset, timeout_s, look)
    return offset + 1 if end is None else max(end, offset + 1)


class _Answer:
    """What a broker sent: batches, aborted transactions, and where readers must stop."""

    def __init__(self, end: int, aborted: list[tuple[int, int]] | None, content: bytes) -> None:
        self.end, self.aborted, self.records = end, aborted, RecordSet(content)

    def messages(self, place: TopicPartition, at: int) -> PartitionRecords:
        """Return its messages from an offset on."""
        reading = (self.records, self.aborted, at, None, None, True, READ_COMMITTED)
        return PartitionRecords(place, *reading)


Look = Callable[[_Answer, int], tuple[int | None, int | None]]
"""Returns what was asked for, and else where to go on; two times None for nothing at all."""


def _ask(
    config: Config,
    place: TopicPartition,
    offset: int,
    timeout_s: float,
    look: Look,
    *,
    wait_ms: int = MAX_WAIT_MS,
    most_bytes: int = 1,
) -> int | None:
    async def ask() -> int | None:
        async with asyncio.timeout(timeout_s), _client(config) as client:
            at: int | None = offset
            while at is not None:
                answer = await _fetched(client, place, at, wait_ms, most_bytes)
                found, at = look(answer, at)
                if found is not None:
                    return found
        return None

    try:
        return asyncio.run(ask())
    except OffsetOutOfRangeError:
        return None
    except (ClientError, TimeoutError, OSError) as error:
        code = getattr(error, "errno", None) if isinstance(error, ClientError) else None
        raise KafkaException(KafkaError(code or KafkaError._TIMED_OUT)) from None


@asynccontextmanager
async def _client(config: Config) -> "AsyncIterator[Any]":
    kafka = config.kafka
    sasl = {
        "sasl_mechanism": kafka.mechanism,
        "sasl_plain_username": kafka.username,
        "sasl_plain_password": kafka.get_password() if kafka.uses_sasl else None,
    }
    client = AIOKafkaClient(
        bootstrap_servers=kafka.bootstrap_servers,
        security_protocol=kafka.security_protocol,
        ssl_context=kafka.tls_context(),
        **(sasl if kafka.uses_sasl else {}),
    )
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


async def _fetched(
    client: Any, place: TopicPartition, offset: int, wait_ms: int, most_bytes: int
) -> _Answer:
    """Return batches from an offset on, or none; asked again while a leader is elected."""
    while True:
        try:
            await client.set_topics([place.topic])
            leader = client.cluster.leader_for_partition(place)
            # a batch comes whole, however few bytes were asked for
            asked = [(place.topic, [(place.partition, offset, most_bytes)])]
            request = FetchRequest(wait_ms, 1, most_bytes, READ_COMMITTED, asked)
            if leader is not None and leader >= 0:
                answer = await client.send(leader, request)
                ((_, ((_, code, _, end, *_rest, aborted, content),)),) = _plain(answer)
                error = for_code(code)
                if error is NoError:
                    return _Answer(end, aborted, content)
                raise error
        except ClientError as error:
            if not error.retriable:
                raise
        await asyncio.sleep(RETRY_S)
        with suppress(ClientError):
            await client.force_metadata_update()


def _plain(answer: Any) -> Any:
    """Return the topics of an answer as Fetch version 4 has them."""
    if answer.API_VERSION < 11:
        return answer.topics
    # later ones have a replica to prefer between the two
    return [(topic, [(*p[:-2], p[-1]) for p in partitions]) for topic, partitions in answer.topics]
