"""Faults that come from outside of the workers: refused writes, new partitions, foreign hands."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewPartitions,
)

from fluxplain.cli.supervisor import describe_status
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.client import BrokerError, client_settings, partitions_of
from fluxplain.kafka.exits import EXIT_REFUSED
from tests.kit.batches import NOW_MS, send_batches
from tests.kit.kafka_topics import set_topic
from tests.kit.settings import write_config
from tests.measure.chaos.poison import bomb, poison

REQUEST_TIMEOUT_S = 10.0

IN_SYNC, TOO_MANY = "2", "4"
"""`min.insync.replicas` of three copies: as it is, and so that every write is refused."""

BETWEEN_TOPICS_S = (0.0, 8.0)
"""Seconds from one topic's new partition to the next one's, at least and at most."""

REFUSAL_TIMEOUT_S = 90.0
"""Seconds that a foreign worker may take until it refuses; then it is killed."""

SEND_TIMEOUT_S = 120.0
"""Seconds that poison may take to be accepted: brokers come and go."""

MAX_RECEIVED_BYTES = 1_000_000_000
"""Limit of an answer to a fetch, unpacked; bombs are large."""

COMPACTED = {"register", "checkpoints"}
"""Topics whose records have keys."""

Place = tuple[str, int, int]
"""Topic without the prefix, partition, offset."""


class Topics:
    """What is done to the topics.

    Parameters
    ----------
    config
        The settings, with the broker.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._closing = threading.Event()
        self.partitions = config.topics.features_partitions

    def close(self) -> None:
        """Wait for no broker any more."""
        self._closing.set()

    def refuse_writes(self, topic: str) -> None:
        """Have the brokers refuse all writes to a topic."""
        self._require(topic, TOO_MANY)

    def accept_writes(self, topic: str) -> None:
        """Have the brokers accept writes again."""
        self._require(topic, IN_SYNC)

    def add_partition(self, topics: Sequence[str], rng: random.Random) -> int:
        """Add a partition to topics, in random order, and return which."""
        added = self.partitions
        for topic in rng.sample(list(topics), len(topics)):
            self._closing.wait(rng.uniform(*BETWEEN_TOPICS_S))
            while not self._closing.is_set() and not self._has(topic, added):
                wanted = NewPartitions(self._config.topic(topic), added + 1)
                admin = AdminClient(
                    client_settings(self._config)
                )  # must live until the answer is there
                with suppress(
                    KafkaException, TimeoutError
                ):  # of brokers that are away, or have not answered
                    for future in admin.create_partitions([wanted]).values():
                        future.result(REQUEST_TIMEOUT_S)
                time.sleep(0.2)
        self.partitions += 1
        return added

    def _has(self, topic: str, partition: int) -> bool:
        try:
            return partition in partitions_of(self._config, self._config.topic(topic))
        except BrokerError:
            return False

    def _require(self, topic: str, replicas: str) -> None:
        set_topic(self._config, topic, "min.insync.replicas", replicas)


class Poisoner:
    """Writes poison and bombs, as any producer may.

    Parameters
    ----------
    config
        The settings, with the broker.
    topics
        What knows how many partitions were added.
    seed
        Of what is written.

    Attributes
    ----------
    places
        Where poison and bombs are; after :meth:`find_others` also those that no broker answered.
    """

    def __init__(self, config: Config, topics: Topics, seed: int) -> None:
        self._config, self._topics = config, topics
        self._closing = threading.Event()
        self._rng = random.Random(f"chaos/{seed}/poison")
        self.places: list[Place] = []
        self._unanswered: set[tuple[str, int]] = set()

    def close(self) -> None:
        """Wait for no broker any more."""
        self._closing.set()

    def send(self, topic: str, pick: float, *, is_bomb: bool) -> Place:
        """Write one to a partition of a topic; wait until it is accepted.

        Raises
        ------
        TimeoutError
            If it is not accepted.
        """
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
            for offset in _poison_in(self._config, self._config.topic(topic), partition):
                place = topic, partition, offset
                self.places += [] if place in self.places else [place]

    def _partitions(self, topic: str) -> int:
        if topic == "register":
            return 1
        is_input = topic in {"features", "labels", "observations"}
        return self._topics.partitions if is_input else self._config.topics.partitions


def is_poison(message: Message) -> bool:
    """Return whether a message was written by a :class:`Poisoner`, by its timestamp."""
    return bool(message.timestamp()[1] == NOW_MS)


def _poison_in(config: Config, topic: str, partition: int) -> Iterator[int]:
    """Yield the offsets of poison in a partition."""
    consumer = Consumer(
        {
            **client_settings(config),
            "group.id": config.topic("poison"),  # never joined: a partition is assigned
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "receive.message.max.bytes": MAX_RECEIVED_BYTES,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        while True:
            for message in consumer.consume(1000, REQUEST_TIMEOUT_S):
                error = message.error()
                if error is None:
                    if is_poison(message):
                        yield int(message.offset() or 0)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a foreign worker ended.

    Attributes
    ----------
    role
        Its role.
    status
        Its exit status; None if it had to be killed.
    said
        The end of its log.
    """

    role: Role
    status: int | None
    said: str

    @property
    def is_defect(self) -> bool:
        """Whether it did anything else than refuse."""
        return self.status != EXIT_REFUSED

    def __str__(self) -> str:
        ended = "had to be killed" if self.status is None else describe_status(self.status)
        return f"a foreign {self.role} worker: {ended}"


class Foreigners:
    """Starts workers of the same prefix with another seed and model.

    Parameters
    ----------
    folder
        For their settings, checkpoints and logs.
    settings
        The pipeline's own.

    Attributes
    ----------
    ended
        How they ended.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        model = {"factory": "river.naive_bayes:GaussianNB"}
        self._settings = {**settings, "seed": 4_711, "model": model}
        self._closing = threading.Event()
        self.ended: list[Refusal] = []

    def close(self) -> None:
        """Wait for none any more."""
        self._closing.set()

    def start(self, role: Role) -> None:
        """Start one, and wait until it has ended."""
        number = len(self.ended)
        folder = self._folder / f"foreign-{number}"
        folder.mkdir()
        path = write_config(folder / "foreign.toml", self._settings)
        environment = {**os.environ, "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(folder / "checkpoints")}
        command = (*(sys.executable, "-m", "fluxplain.cli", "worker"), "--role", role)
        log = folder / "foreign.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--config", str(path)], env=environment, stdout=output, stderr=output
            )
        status: int | None = None
        deadline = time.monotonic() + REFUSAL_TIMEOUT_S
        while status is None and time.monotonic() < deadline and not self._closing.wait(0.2):
            status = process.poll()
        process.kill()
        process.wait()
        self.ended.append(Refusal(role, status, log.read_text(errors="replace")[-500:]))


class Aside:
    """Does one kind of thing after the other in a thread, so that nobody waits for it."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._futures: list[Future[None]] = []
        self._lock = threading.Lock()

    def do(self, what: Callable[[], None]) -> None:
        """Do it when all before it is done."""
        self._futures.append(self._pool.submit(what))

    def is_done(self) -> bool:
        """Return whether all is done; raise what went wrong."""
        for each in [each for each in self._futures if each.done()]:
            self._futures.remove(each)
            each.result()
        return not self._futures

    def close(self) -> None:
        """Do nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
