"""Records that no stage can use, and small batches that unpack to hundreds of megabytes."""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Event

import confluent_kafka
from confluent_kafka import KafkaError, Message

from fluxplain.config import Config
from fluxplain.kafka.client import asking_consumer
from tests.kit.batches import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    NOW_MS,
    Batch,
    Header,
    batch,
    record,
    send_batches,
)

Place = tuple[str, int, int]
"""Topic without the prefix, partition, offset."""

REQUEST_TIMEOUT_S = 10.0

SEND_TIMEOUT_S = 120.0
"""Seconds that poison may take to be accepted: brokers come and go."""

MAX_RECEIVED_BYTES = 1_000_000_000
"""Limit of an answer to a fetch, unpacked; bombs are large."""

COMPACTED = {"register", "checkpoints"}
"""Topics whose records have keys."""

BOMB_BYTES = 300 * 1024 * 1024
"""Size of a bomb when it is unpacked; packed it has at most 0.3 MB. The verifier's own client
unpacks it too."""

LONGEST = 2_000
"""Most random bytes of a key, a value or a header."""

BAD_NAMES = (b"\xff\xfe", b"\xed\xa0\x80", b"", b"\x00", "ключ".encode("utf-16"))
"""Names of headers; most are not UTF-8."""

OWN_NAMES = (b"fluxplain-origin", b"fluxplain-writer", b"fluxplain-origin-timestamp")
"""Headers of the pipeline's own, which anybody can forge."""


def poison(rng: random.Random, *, keyed: bool = False) -> Batch:
    """Return a batch with one record that is no observation, label or evaluation.

    Brokers refuse records without a key for compacted topics.

    Examples
    --------
    >>> poison(random.Random(1)) == poison(random.Random(1)) != poison(random.Random(2))
    True
    """
    value = rng.choice((None, b"", b"{", b"[]", b'{"x": 1}', _random(rng), _random(rng)))
    key = rng.choice((*(() if keyed else (None,)), b"", b"key", _random(rng)))
    headers = [_header(rng) for _ in range(rng.randrange(4))]
    packed = record(0, value, key=key, headers=headers)
    return batch([packed], rng.choice([NONE, *CODECS.values()]))


def bomb(rng: random.Random) -> Batch:
    """Return a small batch with one record, under a key, of many zeros."""
    codec = rng.choice((GZIP, LZ4))
    if codec not in _BOMBS:
        size = BOMB_BYTES if codec == GZIP else BOMB_BYTES // 2  # brokers take 1 MB at most
        packed = record(0, bytes(size), key=b"bomb")
        _BOMBS[codec] = batch([packed], codec)  # made once: it takes a while
    return _BOMBS[codec]


_BOMBS: dict[int, Batch] = {}


def _random(rng: random.Random) -> bytes:
    # not by chance what a stage can use
    return b"\xff" + rng.randbytes(rng.randrange(LONGEST))


def _header(rng: random.Random) -> Header:
    name = rng.choice((*BAD_NAMES, *OWN_NAMES, _random(rng)))
    return name, rng.choice((None, b"", _random(rng)))


class Poisoner:
    """Writes poison and bombs, as any producer may.

    Attributes
    ----------
    partitions
        How many the inputs have now.
    places
        Where poison and bombs are; after :meth:`find_others` also those that no broker answered.
    """

    def __init__(self, config: Config, seed: int, closing: Event) -> None:
        self._config, self._closing = config, closing
        self._rng = random.Random(f"chaos/{seed}/poison")
        self._unanswered: set[tuple[str, int]] = set()
        self.partitions = config.topics.features_partitions
        self.places: list[Place] = []

    def send(self, topic: str, pick: float, *, is_bomb: bool) -> Place:
        """Write one to a partition of a topic; wait until it is accepted."""
        keyed = topic in COMPACTED
        made = bomb(self._rng) if is_bomb else poison(self._rng, keyed=keyed)
        partition = int(pick * self._partitions(topic))
        servers, name = self._config.kafka.bootstrap_servers, self._config.topic(topic)
        deadline = time.monotonic() + SEND_TIMEOUT_S
        while True:
            try:
                [answer] = send_batches(servers, name, [made], partition)
            except Exception as error:  # of a broker that is away
                answer = repr(error)
            if isinstance(answer, int):
                self.places.append((topic, partition, answer))
                return self.places[-1]
            self._unanswered.add((topic, partition))
            if self._closing.is_set() or time.monotonic() > deadline:
                raise TimeoutError(f"{topic}-{partition} does not take poison: {answer}")
            time.sleep(1.0)

    def find_others(self) -> None:
        """Find what was written although no broker answered, and written again."""
        for topic, partition in sorted(self._unanswered):
            found = [(topic, partition, offset) for offset in self._poison_in(topic, partition)]
            self.places += [place for place in found if place not in self.places]

    def _poison_in(self, topic: str, partition: int) -> Iterator[int]:
        limits = {"enable.partition.eof": True, "receive.message.max.bytes": MAX_RECEIVED_BYTES}
        with closing(asking_consumer(self._config, self._config.topic("poison"), **limits)) as it:
            it.assign([confluent_kafka.TopicPartition(self._config.topic(topic), partition, 0)])
            while True:
                for message in it.consume(1000, REQUEST_TIMEOUT_S):
                    error = message.error()
                    if error is None and is_poison(message):
                        yield int(message.offset() or 0)
                    elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return

    def _partitions(self, topic: str) -> int:
        if topic == "register":
            return 1
        is_input = topic in {"features", "labels", "observations"}
        return self.partitions if is_input else self._config.topics.partitions


def is_poison(message: Message) -> bool:
    """Return whether a message was written by a :class:`Poisoner`, by its timestamp."""
    return bool(message.timestamp()[1] == NOW_MS)
