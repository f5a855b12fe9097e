"""Reads all that stands in the topics, as a plain consumer does, whatever happens to brokers."""

import queue
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from fluxplain.config import Config
from fluxplain.kafka.client import client_settings, cluster
from fluxplain.schemas import OUTPUTS
from fluxplain.stages import Message as Joined
from tests.kit.kafka_pipeline import Published, identity
from tests.measure.chaos.faults import MAX_RECEIVED_BYTES, Place, is_poison

INPUTS = ("features", "labels")

REQUEST_TIMEOUT_S = 10.0

FINISH_TIMEOUT_S = 60.0

LONGEST = 2_000_000
"""Bytes of a value that is kept, at most."""


class Collector(Thread):
    """Everything in the output topics, in ``features`` and ``labels``, and what joins them.

    Attributes
    ----------
    published
        Identity → the different records under it, in the order of their first appearance.
    messages
        Topic → messages read.
    fed
        (topic, partition) → the values in it.
    joined
        Partition → the messages in the model role's input, without poison.
    unreadable
        Where messages of the output topics stand that are no records.
    newest_at
        When the newest identity was read, by the monotonic clock.
    failure
        Why it stopped reading too early.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(name="collector", daemon=True)
        self._config = config
        self._inputs = [name for name in INPUTS if name == "features" or config.is_joined]
        # each once
        wanted = dict.fromkeys((*OUTPUTS, *self._inputs, config.source))
        names = [config.topic(name) for name in wanted]
        topics = cluster(config).topics
        places = [(topic, partition) for topic in names for partition in topics[topic].partitions]
        self._next: dict[tuple[str, int], int] = dict.fromkeys(places, 0)
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": config.topic("collector"),  # never joined: partitions are assigned
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 100,
                "receive.message.max.bytes": MAX_RECEIVED_BYTES,
            }
        )
        self._consumer.assign([TopicPartition(topic, place, 0) for topic, place in places])
        self._stopping = Event()
        self._to_the_end = True
        self.prefix = config.topics.prefix
        self._new: queue.Queue[tuple[str, int]] = queue.Queue()
        self.unreadable: set[Place] = set()
        self.published: Published = defaultdict(set)
        self.messages: Counter[str] = Counter()
        self.fed: dict[tuple[str, int], list[bytes | None]] = defaultdict(list)
        self.joined: dict[int, list[Joined]] = defaultdict(list)
        self.newest_at = time.monotonic()
        self.failure: Exception | None = None

    def run(self) -> None:
        """Read until told to finish, then to the end of what is there."""
        try:
            while not self._stopping.is_set():
                self._read()
            ends = self._ends() if self._to_the_end else {}
            while self._to_the_end and any(self._next[at] < end for at, end in ends.items()):
                self._read()
        except Exception as error:
            self.failure = error

    def add_partition(self, topics: Sequence[str], partition: int) -> None:
        """Read a partition of topics, named without the prefix, that was added to them."""
        for topic in {*topics} & {*self._inputs, self._config.source}:
            self._new.put((self._config.topic(topic), partition))

    def finish(self) -> None:
        """Read what is still there, and stop.

        Raises
        ------
        RuntimeError
            If it cannot be read.
        """
        self._to_the_end = True
        self._stopping.set()
        self.join(FINISH_TIMEOUT_S)
        if self.is_alive() or self.failure:
            raise RuntimeError(f"the topics cannot be read to their end: {self.failure or 'late'}")

    def close(self) -> None:
        """Stop reading, wherever it is, and leave the broker."""
        self._to_the_end = False
        self._stopping.set()
        if self.ident is not None:
            self.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._new.empty():
            place = self._new.get()
            self._next[place] = 0
            self._consumer.incremental_assign([TopicPartition(*place, 0)])
        # calls from another thread would wait for this one for ever
        for message in self._consumer.consume(1000, 0.2):
            self._take(message)

    def _ends(self) -> Mapping[tuple[str, int], int]:
        return {place: self._end(TopicPartition(*place)) for place in self._next}

    def _end(self, place: TopicPartition) -> int:
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                end: int = self._consumer.get_watermark_offsets(place, timeout=REQUEST_TIMEOUT_S)[1]
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                self._read()  # a broker that was killed leads its partitions again
            else:
                return end

    def _take(self, message: Message) -> None:
        error = message.error()
        if error:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise RuntimeError(f"the log was cut off: {error.str()}")
            return  # it tries again by itself
        place, value = (str(message.topic()), int(message.partition() or 0)), message.value()
        offset = int(message.offset() or 0)
        if offset < self._next[place]:
            return
        if offset > self._next[place]:
            raise RuntimeError(f"{place} has no offset {self._next[place]}, but {offset}")
        self._next[place] += 1
        name = place[0].removeprefix(self._config.topics.prefix)
        if len(value or b"") > LONGEST:
            value = None  # a bomb
        if name in self._inputs:
            self.fed[name, place[1]].append(value)
        if name == self._config.source:
            # of poison, confluent-kafka ends the process when it is asked for the headers
            if not is_poison(message):
                self.joined[place[1]].append(_joined(message))
        elif name not in self._inputs:
            self._take_output(name, (name, place[1], offset), value)

    def _take_output(self, name: str, place: Place, value: bytes | None) -> None:
        try:
            key = identity(name, value or b"")
        except (ValueError, LookupError, TypeError):
            self.unreadable.add(place)
            return
        assert value is not None
        if key not in self.published:  # else a worker that dies again and again would seem to go on
            self.newest_at = time.monotonic()
        self.published[key].add(value)
        self.messages[name] += 1


def _joined(message: Message) -> Joined:
    headers = dict(message.headers() or ())
    kept = {name: content for name, content in headers.items() if content is not None}
    place = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
    return Joined(*place, message.key(), message.value(), message.timestamp()[1], kept)
