"""Record batches byte by byte, also ones that no client would write, and how to send them.

Kafka's message format, version 2: https://kafka.apache.org/documentation/#recordbatch
"""

import asyncio
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import cramjam
from aiokafka.client import AIOKafkaClient
from aiokafka.codec import snappy_encode
from aiokafka.errors import for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c, encode_varint
from aiokafka.structs import TopicPartition

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}

XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""What snappy of the Java client begins with."""

ATTEMPTS = 50

Header = tuple[bytes | None, bytes | None]

NOW_MS = int(time.time() * 1000)
"""Brokers delete what is old by its timestamp."""


def varint(value: int) -> bytes:
    """Return a zigzag varint.

    Examples
    --------
    >>> varint(-1), varint(64)
    (b'\\x01', b'\\x80\\x01')
    """
    out = bytearray()
    encode_varint(value, out.append)
    return bytes(out)


def sized(value: bytes | None) -> bytes:
    """Return bytes, or null, behind their length."""
    return varint(-1) if value is None else varint(len(value)) + value


def record(
    delta: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: Sequence[Header] = (),
    header_count: int | None = None,
    timestamp_delta: int = 0,
) -> bytes:
    """Return a record behind its length: offset and timestamp are less those of the batch.

    Names of headers may be any bytes, or null; None for as many as there are.
    """
    body = b"\x00" + varint(timestamp_delta) + varint(delta) + sized(key) + sized(value)
    body += varint(len(headers) if header_count is None else header_count)
    body += b"".join(sized(name) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def compressed(payload: bytes, codec: int) -> bytes:
    """Return a payload as a client compresses it."""
    if codec == GZIP:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(payload) + packer.flush()
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(payload))
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(block_linked=False)  # brokers take no linked blocks
        frame.compress(payload)
        return bytes(frame.finish())
    return bytes(cramjam.zstd.compress(payload)) if codec == ZSTD else payload


def xerial(payload: bytes) -> bytes:
    """Return a payload as the Java client compresses it by snappy."""
    return bytes(snappy_encode(payload))


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of records, which are compressed as `attributes` say; fields as the format has them.

    `last_delta` is the offset of the last record less that of the batch; None for that of `count`.
    """

    payload: bytes
    count: int
    attributes: int = NONE
    last_delta: int | None = None
    base_offset: int = 0
    base_timestamp: int = NOW_MS
    max_timestamp: int = NOW_MS
    producer_id: int = -1
    magic: int = 2

    def encode(self) -> bytes:
        last = self.count - 1 if self.last_delta is None else self.last_delta
        checked = struct.pack(
            ">hiqqqhii",
            *(self.attributes, last, self.base_timestamp, self.max_timestamp),
            *(self.producer_id, -1, -1, self.count),
        )
        checked += self.payload
        length = 4 + 1 + 4 + len(checked)
        head = struct.pack(">qiibI", self.base_offset, length, -1, self.magic, calc_crc32c(checked))
        return head + checked


def batch(records: Sequence[bytes], codec: int = NONE, **fields: int) -> Batch:
    """Return a batch of records, each made by :func:`record`."""
    payload = compressed(b"".join(records), codec)
    return Batch(payload, len(records), fields.pop("attributes", 0) | codec, **fields)


def send_batches(
    bootstrap_servers: str, topic: str, batches: Sequence[Batch | bytes], partition: int = 0
) -> list[int | str]:
    """Send batches as they are; return for each its offset, or the name of the broker's error."""
    return asyncio.run(_send(bootstrap_servers, TopicPartition(topic, partition), batches))


async def _send(
    bootstrap_servers: str, place: TopicPartition, batches: Sequence[Batch | bytes]
) -> list[int | str]:
    client = AIOKafkaClient(bootstrap_servers=bootstrap_servers)
    await client.bootstrap()
    try:
        await client.set_topics([place.topic])
        await client.force_metadata_update()
        answers: list[int | str] = []
        for each in batches:
            content = each if isinstance(each, bytes) else each.encode()
            topics = [(place.topic, [(place.partition, content)])]
            for _ in range(ATTEMPTS):
                node = client.cluster.leader_for_partition(place)
                answer = await client.send(node, ProduceRequest(None, -1, 30_000, topics))
                ((_, ((_, code, offset, *_rest),)),) = answer.topics
                if not code or not for_code(code).invalid_metadata:
                    break
                await asyncio.sleep(0.2)  # the topic is new: its leader is not known to all yet
                await client.force_metadata_update()
            answers.append(for_code(code).__name__ if code else offset)
        return answers
    finally:
        await client.close()
