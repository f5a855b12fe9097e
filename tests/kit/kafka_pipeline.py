"""The pipeline as users deploy it: worker processes of every role on a broker, and its output."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from fluxplain.cli.supervisor import ROLES, Supervisor
from fluxplain.config import Config, load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.embedded import CHECKPOINT_INTERVAL_S
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets, PipelineProgress
from fluxplain.kafka.topics.reader import TopicReader
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.local import LocalPipeline
from fluxplain.schemas import OUTPUTS
from fluxplain.stages import Message

Published = dict[tuple[Any, ...], set[bytes]]
"""Identity → the different records that were published under it."""

Headers = dict[tuple[Any, ...], set[tuple[tuple[str, bytes], ...]]]
"""Identity → the different headers that it was published with."""

IDENTITY = {
    "predictions": ("stream", "incarnation", "seq"),
    "explanations": ("stream", "feature", "method", "alpha", "incarnation", "seq"),
    "changes": ("stream", "kind", "feature", "method", "incarnation", "seq"),
    "dead-letters": ("topic", "partition", "offset", "key", "incarnation"),
}
"""Topic → the fields that a consumer drops repeated records by."""


def wait_until_idle(config: Config, attend: Callable[[], None], *, timeout_s: float) -> None:
    """Wait until every role has taken, and committed, all that is in its topics.

    Parameters
    ----------
    config
        Settings, with the broker.
    attend
        What to do meanwhile, again and again.
    timeout_s
        How long it may take in all.

    Raises
    ------
    AssertionError
        If it takes longer, with who is how far behind.
    """
    deadline = time.monotonic() + timeout_s
    # in the order of the data's flow: what one has committed is there for the next
    for replica in config.replicas():
        for topic in config.inputs(replica.role):
            with closing(GroupOffsets(config, replica, topic)) as group:
                while lag := group.lag():
                    assert time.monotonic() < deadline, f"{replica} of {topic} is {lag} behind"
                    attend()


class KafkaPipeline:
    """Workers of every role, supervised, and everything that they publish.

    Parameters
    ----------
    config_path
        Settings, without the broker.
    bootstrap_servers
        The broker.
    folder
        For checkpoints and the workers' log.
    roles
        Of which to start a worker; of one that is named twice, two.
    environment, environment_of
        Variables to add for all workers, and for each, by its name.

    Attributes
    ----------
    takes_foreign, foreign
        Whether others write into the topics of the pipeline too, and how many of their messages
        were read that cannot be the pipeline's.
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
        self._roles = roles
        self.config = load_config(config_path).on_broker(bootstrap_servers)
        create_topics(self.config)
        self.log_path = folder / "workers.log"
        self.checkpoints = folder / "checkpoints"
        self._log = self.log_path.open("wb")
        self.environment = {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
            "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self.checkpoints),
            "FLUXPLAIN_CHECKPOINT__INTERVAL_S": str(CHECKPOINT_INTERVAL_S),
            **(environment or {}),
        }
        self.workers = Supervisor(
            config_path,
            self.config.replicas(),
            environment=self.environment,
            environment_of=environment_of,
            stderr=self._log,
        )
        self.published: Published = defaultdict(set)
        self.messages = self.foreign = 0
        self.takes_foreign = False
        self.keys: dict[str, set[bytes | None]] = defaultdict(set)
        self.headers: Headers = defaultdict(set)
        self._reader = TopicReader(self.config, list(OUTPUTS), from_beginning=True)
        self._progress = PipelineProgress(self.config, partition=0)

    def feed(self, values: Iterable[bytes], *, max_lag: int | None = None) -> int:
        """Send observations, holding back as ``fluxplain replay`` does."""

        def attend(_sent: int, _through: int) -> None:
            self.workers.check()
            self.collect()

        return replay(self.config, values, ReplayOptions(max_lag=max_lag), report=attend)

    def collect(self) -> None:
        """Read what was published so far."""
        while messages := self._reader.poll(0.1):
            for message in messages:
                name = self._reader.name(message)
                value = message.value()
                if self.takes_foreign and not has_identity(name, value):
                    self.foreign += 1
                    continue
                assert value is not None
                self.published[identity(name, value)].add(value)
                self.headers[identity(name, value)].add(tuple(message.headers() or ()))
                self.keys[name].add(message.key())
                self.messages += 1

    def wait_until_through(
        self, records: int, *, timeout_s: float = 120.0, each: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until the observations below an offset have gone through all roles."""
        deadline = time.monotonic() + timeout_s
        while self._progress.update() < records:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"only {self._progress.through} of {records} records went through "
                    f"(the first role: {self._progress.taken}) in {timeout_s} s"
                )
            self.workers.check()
            each()
            self.collect()
        self.collect()

    def wait_until(self, done: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        """Wait until a condition on what was published holds."""
        deadline = time.monotonic() + timeout_s
        while not done():
            assert time.monotonic() < deadline, f"not in {timeout_s} s: {self.counts()}"
            self.workers.check()
            self.collect()

    def wait_until_idle(self, *, timeout_s: float = 120.0) -> None:
        """Wait until every role has taken, and committed, all that is in its topics."""

        def attend() -> None:
            self.workers.check()
            self.collect()

        wait_until_idle(self.config, attend, timeout_s=timeout_s)
        self.collect()

    def joined(self, partition: int) -> list[Message]:
        """Return what is in a partition of the topic that joins features and labels."""
        with TopicReader(self.config, [self.config.source], from_beginning=True) as reader:
            return [
                Message(
                    str(each.topic()),
                    partition,
                    int(each.offset() or 0),
                    each.key(),
                    each.value(),
                    each.timestamp()[1],
                    dict(each.headers() or ()),
                )
                for each in reader.until(reader.extent())
                if each.partition() == partition
            ]

    def kill(self, role: Role) -> None:
        """Kill a role's worker as a crash would; the supervisor starts it again."""
        self.workers.kill(f"{role}-1")

    @property
    def log(self) -> str:
        """What the workers have logged."""
        return self.log_path.read_text(errors="replace")

    def send(self, values: Iterable[bytes], partition: int = 0, *, topic: str = "features") -> None:
        """Send observations, or labels, at once, whatever the pipeline is at."""
        producer = RecordProducer(self.config)
        for value in values:
            producer.send(self.config.topic(topic), value, partition=partition)
        producer.flush()

    def counts(self) -> dict[str, int]:
        """Return topic → number of different records."""
        counts = dict.fromkeys(OUTPUTS, 0)
        for key in self.published:
            counts[key[0]] += 1
        return counts

    def __enter__(self) -> Self:
        for role in self._roles:
            for replica in self.config.replicas(role):
                self.workers.add(replica)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is not None:
            exc.add_note(f"the workers' log ends:\n{self.log[-3000:]}")
        self.workers.stop()
        self._reader.close()
        self._progress.close()
        self._log.close()


def identity(topic: str, value: bytes) -> tuple[Any, ...]:
    """Return what a consumer drops repeated records by."""
    fields = orjson.loads(value)
    return (topic, *(fields[name] for name in IDENTITY[topic]))


def of_incarnation(published: Published, number: str) -> Published:
    """Return the records of one incarnation."""
    return {
        key: values
        for key, values in published.items()
        if key[IDENTITY[key[0]].index("incarnation") + 1] == number
    }


def has_identity(topic: str, value: bytes | None) -> bool:
    """Return whether a message may be one of the pipeline."""
    try:
        identity(topic, value or b"")
    except (KeyError, TypeError, orjson.JSONDecodeError):
        return False
    return True


def reference(
    config: Config,
    values: Iterable[bytes],
    partition: int = 0,
    *,
    begin: int = 0,
    life: Life = FIRST,
) -> Published:
    """Return what the local pipeline publishes for the observations of one partition.

    Parameters
    ----------
    config, values, partition
        The settings, and all observations of a partition.
    begin
        Offset of the first one that is read.
    life
        Of the model's state.
    """
    source = config.topic(config.source)
    messages = (Message(source, partition, seq, None, value) for seq, value in enumerate(values))
    return reference_of(config, islice(messages, begin, None), partition, life=life)


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
    missing = sorted(map(str, expected.keys() - published.keys()))
    extra = sorted(map(str, published.keys() - expected.keys()))
    different = [key for key in expected if key in published and published[key] != expected[key]]
    assert not missing, f"{len(missing)} missing, first {missing[:3]}"
    assert not extra, f"{len(extra)} not in the reference, first {extra[:3]}"
    assert not different, (
        f"{len(different)} differ, first {different[0]}: "
        f"{published[different[0]]} instead of {expected[different[0]]}"
    )


Start = Callable[..., KafkaPipeline]
