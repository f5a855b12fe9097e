"""Runs the stages of one role in this process as its worker does, and measures what it takes."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import cramjam

from fluxplain.cli.doctor.model_findings import pickled
from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.metrics.record_counts import PublishedCollector
from fluxplain.kafka.producer import key_hash
from fluxplain.kafka.worker.outbox import Headers, Outbox
from fluxplain.schemas import DeadLetter
from fluxplain.stages import Message, ModelStage, Stage, process
from fluxplain.stages.trace import trace_of

HEADER_BYTES = 8
"""Bytes that Kafka adds to a message in its log: lengths, and differences of time and offset."""

Factory = Callable[[Config, Replica, str, int], Stage]
"""Makes the stage of a role for a partition of its input."""


@dataclass(slots=True)
class Need:
    """What a role took: CPU seconds, and the messages that it read and published."""

    seconds: float = 0.0
    taken: int = 0
    sent: int = 0


@dataclass
class Caught:
    """Keeps the messages that an outbox sends, instead of a producer.

    ``disk`` counts the bytes of each topic on one broker, compressed as a producer does.
    """

    config: Config
    messages: list[Message] = field(default_factory=list)
    offsets: Counter[tuple[str, int]] = field(default_factory=Counter)
    disk: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    obstacle: str | None = None

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        *,
        headers: Headers | None = None,
    ) -> None:
        """Keep one message."""
        if partition is None:
            partition = key_hash(key) % self.partitions(topic) if key else 0
        place = topic, partition
        message = Message(*place, self.offsets[place], key, value, headers=headers or {})
        self.messages.append(message)
        self.offsets[place] += 1

    def partitions(self, topic: str, *, beyond: int = 0, timeout_s: float = 0.0) -> int:
        """Return the configured number of partitions."""
        del beyond, timeout_s
        topics, source = self.config.topics, self.config.topic(self.config.source)
        return topics.features_partitions if topic == source else topics.partitions

    def serve(self) -> None:
        """Do nothing: no report of a delivery comes."""

    async def flushed(self) -> None:
        """Do nothing: nothing waits."""

    def pop(self) -> list[Message]:
        """Return the messages kept since the last call, and count their bytes."""
        messages, self.messages = self.messages, []
        batches: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        for each in messages:
            parts = [each.key or b"", each.value or b"", bytes(HEADER_BYTES)]
            parts += [part for name, text in each.headers.items() for part in (name.encode(), text)]
            batches[each.topic, each.partition].append(b"".join(parts))
        for (topic, _), batch in batches.items():
            self.disk[topic] += len(cramjam.lz4.compress(b"".join(batch)))
        return messages


class RoleRun:
    """The stages of a role, one for each partition of its input, and its outbox."""

    def __init__(self, config: Config, replica: Replica, make: Factory) -> None:
        self.replica = replica
        self.topics = {config.topic(name) for name in config.inputs(replica.role)}
        self.caught = Caught(config)
        self.need = Need()
        self.letters, self.last_reason = 0, ""
        self._config, self._make = config, make
        observe = PublishedCollector(config, str(replica)).observe
        partitions = config.topics.partitions
        self._outbox = Outbox(config, self.caught, partitions, observe)
        self._stages: dict[tuple[str, int], Stage] = {}

    def take(self, messages: Iterable[Message]) -> Sequence[Message]:
        """Let the stages take messages; return what the role publishes."""
        began = time.process_time()
        for message in messages:
            for record in process(self._stage(message), message):
                if isinstance(record, DeadLetter):
                    self.letters += 1
                    self.last_reason = record.reason
                headers = trace_of(record, message)
                self._outbox.send(record, message.key, message.partition, headers)
            self._outbox.send_all_if_old(time.monotonic())
            self.need.taken += 1
        self._outbox.send_all()
        self.need.seconds += time.process_time() - began
        sent = self.caught.pop()
        self.need.sent += len(sent)
        return sent

    def reset(self) -> None:
        """Begin to count again from zero."""
        self.need = Need()
        self.caught.disk = Counter()

    def explain_every(self, every: int) -> None:
        """Let the model role explain one of this many observations."""
        for stage in self._stages.values():
            if isinstance(stage, ModelStage):
                stage.every = every

    @property
    def checkpoint_bytes(self) -> int:
        """Size of the states of all partitions."""
        return sum(len(pickled(stage)) for stage in self._stages.values())

    @property
    def disk(self) -> Counter[str]:
        """Topic → bytes published since the last reset, on the disk of one broker."""
        return self.caught.disk

    def _stage(self, message: Message) -> Stage:
        place = message.topic, message.partition
        if place not in self._stages:
            self._stages[place] = self._make(self._config, self.replica, *place)
        return self._stages[place]
