"""Reads all that stands in the topics, as a plain consumer does, whatever happens to brokers."""

import queue
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from threading import Event, Thread

import confluent_kafka
from confluent_kafka import KafkaError

from fluxplain.config import Config
from fluxplain.kafka.client import TopicPartition, ask_log_ranges, asking_consumer, partitions_of
from fluxplain.schemas import OUTPUTS
from fluxplain.stages import Message
from tests.kit.kafka_pipeline import Published, identity, message_of
from tests.kit.waiting import FailedError
from tests.measure.chaos.poison import MAX_RECEIVED_BYTES, Place, is_poison

FINISH_TIMEOUT_S = 60.0

LONGEST = 2_000_000
"""Bytes of a value that is kept, at most."""


class Collector(Thread):
    """Everything in the output topics, in ``features`` and ``labels``, and what joins them.

    Attributes
    ----------
    published, messages
        Identity → the different records under it, in the order of their first appearance; and
        topic → messages read.
    fed, joined
        (topic, partition) → the values in it; and partition → the messages in the model role's
        input, without poison.
    unreadable
        Where messages of the output topics stand that are no records.
    newest_at
        When the newest identity was read, by the monotonic clock.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(name="collector", daemon=True)
        self._config = config
        self._inputs = {"features", "labels"} if config.is_joined else {"features"}
        topics = {config.topic(name) for name in (*OUTPUTS, *self._inputs, config.source)}
        self._next = {
            TopicPartition(topic, each): 0
            for topic in topics
            for each in partitions_of(config, topic)
        }
        settings = {
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 100,
            "receive.message.max.bytes": MAX_RECEIVED_BYTES,
        }
        self._consumer = asking_consumer(config, config.topic("collector"), **settings)
        self._consumer.assign([confluent_kafka.TopicPartition(*tp, 0) for tp in self._next])
        self._stopping = Event()
        self._to_the_end = True
        self._failure: Exception | None = None
        self._new: queue.Queue[TopicPartition] = queue.Queue()
        self.unreadable: set[Place] = set()
        self.published: Published = defaultdict(set)
        self.messages: Counter[str] = Counter()
        self.fed: dict[tuple[str, int], list[bytes | None]] = defaultdict(list)
        self.joined: dict[int, list[Message]] = defaultdict(list)
        self.newest_at = time.monotonic()

    def run(self) -> None:
        """Read until told to finish, then to the end of what is there."""
        try:
            while not self._stopping.is_set():
                self._read()
            ends: dict[TopicPartition, range] = {}
            for topic, partition in self._next if self._to_the_end else ():
                what = self._config, self._consumer, topic, [partition], "cannot read the topics"
                ends |= ask_log_ranges(*what)
            while self._to_the_end and any(self._next[tp] < ends[tp].stop for tp in ends):
                self._read()
        except Exception as error:
            self._failure = error

    def check(self) -> None:
        if self._failure:
            raise FailedError(f"the verifier cannot read: {self._failure!r}")

    def add_partition(self, topics: Sequence[str], partition: int) -> None:
        """Read a partition of topics, named without the prefix, that was added to them."""
        for topic in {*topics} & {*self._inputs, self._config.source}:
            self._new.put(TopicPartition(self._config.topic(topic), partition))

    def finish(self) -> None:
        """Read what is still there, and stop."""
        self._stopping.set()
        self.join(FINISH_TIMEOUT_S)
        if self.is_alive() or self._failure:
            late = self._failure or "late"
            raise RuntimeError(f"the topics cannot be read to their end: {late}")

    def close(self) -> None:
        """Stop reading, wherever it is, and leave the broker."""
        self._to_the_end = False
        self._stopping.set()
        if self.ident is not None:
            self.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._new.empty():
            tp = self._new.get()
            self._next[tp] = 0
            self._consumer.incremental_assign([confluent_kafka.TopicPartition(*tp, 0)])
        # calls from another thread would wait for this one for ever
        for message in self._consumer.consume(1000, 0.2):
            self._take(message)

    def _take(self, message: confluent_kafka.Message) -> None:
        error = message.error()
        if error:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise RuntimeError(f"the log was cut off: {error.str()}")
            return  # it tries again by itself
        tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
        offset, value = int(message.offset() or 0), message.value()
        if offset < self._next[tp]:
            return
        if offset > self._next[tp]:
            raise RuntimeError(f"{tp} has no offset {self._next[tp]}, but {offset}")
        self._next[tp] += 1
        name = tp.topic.removeprefix(self._config.topics.prefix)
        if len(value or b"") > LONGEST:
            value = None  # a bomb
        if name in self._inputs:
            self.fed[name, tp.partition].append(value)
        if name == self._config.source:
            # of poison, confluent-kafka ends the process when it is asked for the headers
            if not is_poison(message):
                self.joined[tp.partition].append(message_of(message))
        elif name not in self._inputs:
            self._take_output((name, tp.partition, offset), value)

    def _take_output(self, place: Place, value: bytes | None) -> None:
        try:
            key = identity(place[0], value or b"")
        except (ValueError, LookupError, TypeError):
            self.unreadable.add(place)
            return
        if key not in self.published:  # else a worker that dies again and again would seem to go on
            self.newest_at = time.monotonic()
        self.published[key].add(value or b"")
        self.messages[place[0]] += 1
