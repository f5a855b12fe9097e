"""The pipeline as users deploy it: worker processes of every role on a broker, and its output."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Self

import confluent_kafka
import orjson

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.embedded import CHECKPOINT_INTERVAL_S
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.kafka.topics.topic_reader import TopicReader, tp_of
from fluxplain.local import LocalPipeline
from fluxplain.schemas import OUTPUTS
from fluxplain.stages import Message
from tests.kit.comparison import compare
from tests.kit.in_process import Ended, run_with
from tests.kit.preloaded import Forked
from tests.kit.waiting import wait_until
from tests.kit.workers import Workers

JOINED: tuple[Role, ...] = ("join", *ROLES)
"""The roles where topics are joined."""

Published = dict[tuple[Any, ...], set[bytes]]
"""Identity → the different records that were published under it."""

Streams = Iterable[bytes] | Mapping[int, Iterable[bytes]]
"""Observations of partition 0, or of each partition."""

Headers = dict[tuple[Any, ...], set[tuple[tuple[str, bytes], ...]]]
"""Identity → the different headers that it was published with."""

IDENTITY = {
    "predictions": ("stream", "incarnation", "seq"),
    "reasons": ("stream", "label", "incarnation", "seq"),
    "explanations": ("stream", "feature", "method", "alpha", "incarnation", "seq"),
    "changes": (
        *("stream", "kind", "feature", "method", "signal", "status"),
        *("incarnation", "seq"),
    ),
    "dead-letters": ("topic", "partition", "offset", "key", "incarnation"),
}
"""Topic → the fields that a consumer drops repeated records by."""


class Groups:
    """How far each role has come in each topic that it reads, in the order of the data's flow.

    Attributes
    ----------
    offsets
        (the role or its shard, the topic) → what is committed, and the log.
    """

    def __init__(self, config: Config) -> None:
        self.offsets = {
            (str(replica), topic): GroupOffsets(config, replica, topic)
            for replica in config.replicas()
            for topic in config.inputs(replica.role)
        }

    def are_idle(self) -> bool:
        """Return whether all is committed: what one role has committed is there for the next."""
        return not any(group.lag() for group in self.offsets.values())

    def left(self) -> str:
        """Describe what is not committed: with that it is a stall, else a loss."""
        lags = ((*key, group.lag()) for key, group in self.offsets.items())
        return ", ".join(f"{replica} of {topic} {lag:,}" for replica, topic, lag in lags)

    def close(self) -> None:
        for group in self.offsets.values():
            group.close()


def wait_until_idle(config: Config, attend: Callable[[], None], *, timeout_s: float) -> None:
    with closing(Groups(config)) as groups:
        wait_until(groups.are_idle, timeout_s, what=lambda: f"left {groups.left()}", attend=attend)


class KafkaPipeline:
    """Workers of every role, supervised, and everything that they publish.

    `config_path` leaves out the broker; of a role that is named twice two workers start.
    `takes_foreign` says that others write into the topics too.
    """

    def __init__(
        self,
        config_path: Path,
        bootstrap_servers: str,
        folder: Path,
        roles: Sequence[Role] = ROLES,
        environment: Mapping[str, str] | None = None,
        environment_of: Callable[[str], Mapping[str, str]] = lambda _name: {},
    ) -> None:
        self._roles, self._config_path = roles, config_path
        interval = {"FLUXPLAIN_CHECKPOINT__INTERVAL_S": str(CHECKPOINT_INTERVAL_S)}
        self.workers = Workers(
            config_path,
            bootstrap_servers,
            folder,
            environment={**interval, **(environment or {})},
            environment_of=environment_of,
        )
        self.config = self.workers.config
        self.log_path, self.checkpoints = self.workers.log_path, self.workers.checkpoints
        self.environment = self.workers.added
        self.published: Published = defaultdict(set)
        self.messages = 0
        self.takes_foreign = False
        self.keys: dict[str, set[bytes | None]] = defaultdict(set)
        self.headers: Headers = defaultdict(set)
        self._reader = TopicReader(self.config, list(OUTPUTS), from_beginning=True)
        self._next_offsets: dict[TopicPartition, int] = {}

    def feed(self, values: Iterable[bytes], *, max_lag: int | None = None) -> int:
        """Send observations, holding back as ``fluxplain replay`` does."""
        options = ReplayOptions(max_lag=max_lag)
        return replay(self.config, values, options, report=lambda _sent, _through: self.attend())

    def feed_killing(self, values: Iterable[bytes], kills: Mapping[int, str]) -> None:
        """Send observations; before those with these numbers, kill these workers."""

        def killing() -> Iterator[bytes]:
            for i, value in enumerate(values):
                if i in kills:
                    self.workers.kill(kills[i])
                yield value

        self.feed(killing(), max_lag=100)

    def attend(self) -> None:
        """Start again what died, and read what was published so far."""
        self.workers.check()
        while messages := self._reader.poll(0.1):
            for message in messages:
                self._take(self._reader.name(message), message)

    def _take(self, name: str, message: confluent_kafka.Message) -> None:
        value = message.value() or b""
        self._next_offsets[tp_of(message)] = int(message.offset() or 0) + 1
        try:
            key = identity(name, value)
        except (KeyError, TypeError, orjson.JSONDecodeError):
            if self.takes_foreign:
                return
            raise
        self.published[key].add(value)
        self.headers[key].add(tuple(message.headers() or ()))
        self.keys[name].add(message.key())
        self.messages += 1

    def wait_until(self, done: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        wait_until(done, timeout_s, what=lambda: str(self.counts()), attend=self.attend)

    def wait_until_idle(
        self, *, timeout_s: float = 120.0, each: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until every role has committed, and this has read, all; call `each` meanwhile."""

        def attend() -> None:
            each()
            self.attend()

        wait_until_idle(self.config, attend, timeout_s=timeout_s)
        self.wait_until(self._has_all)

    def _has_all(self) -> bool:
        """Return whether all that is published was read: the reader, too, may have to reconnect."""
        extent = self._reader.extent().items()
        return all(self._next_offsets.get(tp, 0) >= log.stop for tp, log in extent if log)

    def process(self, values: Iterable[bytes]) -> None:
        """Send observations and wait until every role has processed them."""
        self.feed(values)
        self.wait_until_idle()

    def finish(self, values: Streams, *, timeout_s: float = 180.0) -> None:
        """Wait until all is done, and compare it with the reference for these observations."""
        self.wait_until_idle(timeout_s=timeout_s)
        streams = values if isinstance(values, Mapping) else {0: values}
        assert_same(self.published, references(self.config, streams))

    def finish_joined(self) -> list[Message]:
        """Wait until all is done, and compare it with the reference for what was joined.

        Returns the messages that were joined in partition 0.
        """
        self.wait_until_idle()
        joined = {partition: self.joined(partition) for partition in range(4)}
        expected: Published = {}
        for partition, messages in joined.items():
            expected |= reference_of(self.config, messages, partition)
        assert_same(self.published, expected)
        return joined[0]

    def committed(self, role: Role, topic: str = "features") -> int:
        """Return what a role has committed of partition 0 of a topic."""
        with closing(GroupOffsets(self.config, role, topic)) as group:
            return group.committed()[0]

    def joined(self, partition: int) -> list[Message]:
        """Return what is in a partition of the topic that joins features and labels."""
        with TopicReader(self.config, [self.config.source], from_beginning=True) as reader:
            messages = reader.until(reader.extent())
            return [message_of(each) for each in messages if each.partition() == partition]

    def kill(self, role: Role) -> None:
        """Kill a role's worker as a crash would; the supervisor starts it again."""
        self.workers.kill(f"{role}-1")

    @property
    def log(self) -> str:
        return self.workers.log

    def send(self, values: Iterable[bytes], partition: int = 0, *, topic: str = "features") -> None:
        """Send observations, or labels, at once, whatever the pipeline is at."""
        producer = RecordProducer(self.config)
        for value in values:
            producer.send(self.config.topic(topic), value, partition=partition)
        producer.flush()

    def run(self, *words: str) -> Ended:
        """Run a command with the settings and the environment of the workers."""
        return run_with(self._config_path, *words, **self.environment)

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Return what was published in a topic, in the order of the observations."""
        return records_of(self.published, topic)

    def changes(self, kind: str) -> list[dict[str, Any]]:
        """Return the changes of a kind that were published."""
        return [each for each in self.records("changes") if each["kind"] == kind]

    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys(OUTPUTS, 0)
        for key in self.published:
            counts[key[0]] += 1
        return counts

    def __enter__(self) -> Self:
        for role in self._roles:
            for replica in self.config.replicas(role):
                self.workers.add(replica)
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            error.add_note(f"the workers' log ends:\n{self.log[-3000:]}")
        self.workers.__exit__()
        self._reader.close()


def message_of(message: confluent_kafka.Message) -> Message:
    """Return what a consumer got as a stage takes it."""
    headers = {name: content for name, content in message.headers() or () if content is not None}
    place = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
    return Message(*place, message.key(), message.value(), message.timestamp()[1], headers)


def identity(topic: str, value: bytes) -> tuple[Any, ...]:
    """Return what a consumer drops repeated records by."""
    fields = orjson.loads(value)
    return (topic, *(fields[name] for name in IDENTITY[topic]))


def records_of(published: Published, topic: str) -> list[dict[str, Any]]:
    """Return the records of a topic, in the order of their observations."""
    found = [orjson.loads(each) for key in published if key[0] == topic for each in published[key]]
    return sorted(found, key=lambda each: each["seq" if "seq" in each else "offset"])


def of_incarnation(published: Published, number: str) -> Published:
    return {
        key: values
        for key, values in published.items()
        if key[IDENTITY[key[0]].index("incarnation") + 1] == number
    }


def reference(
    config: Config,
    values: Iterable[bytes],
    partition: int = 0,
    *,
    begin: int = 0,
    life: Life = FIRST,
) -> Published:
    """Return what the local pipeline publishes for a partition's observations from `begin` on.

    `life` is that of the model's state.
    """
    source = config.topic(config.source)
    messages = (Message(source, partition, seq, None, value) for seq, value in enumerate(values))
    return reference_of(config, islice(messages, begin, None), partition, life=life)


def references(config: Config, values: Mapping[int, Iterable[bytes]]) -> Published:
    """Return the same for the observations of several partitions."""
    published: Published = {}
    for partition, records in values.items():
        published |= reference(config, records, partition)
    return published


def reference_of(
    config: Config, messages: Iterable[Message], partition: int = 0, *, life: Life = FIRST
) -> Published:
    """Return what the local pipeline publishes for the messages of the model stage's input."""
    published: Published = defaultdict(set)
    pipeline = LocalPipeline(config, partition)
    log = list(messages)
    for i, message in enumerate(log):
        for record in pipeline.take(message, islice(log, i + 1, None)):
            value = life.of(record, "model").encode()
            published[identity(record.TOPIC, value)].add(value)
    return published


def assert_same(published: Published, expected: Published) -> None:
    """Fail unless both hold the same records, bit for bit; the message shows the first others."""
    found = compare(published, expected)
    kinds = (found.missing, found.unexpected, found.different)
    assert not any(kinds), f"{', '.join(found.problems())}; {found.examples}"


Start = Callable[..., KafkaPipeline]

StartFaulty = Callable[..., Forked]
