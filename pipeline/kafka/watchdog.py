"""Notices a worker that lives but does not go on, and what happens to its topics meanwhile.

Consumers die quietly: the process runs, its connections are open, and no message comes any more.
So what is watched is progress against what waits, as the broker tells it, on a client and in a
thread of its own. A worker without progress ends itself; whoever supervises it starts it again.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from pipeline.config import Config, Role
from pipeline.kafka.client import (
    AccessError,
    BrokerError,
    client_settings,
    cluster,
    log_offsets,
    no_answer,
    refusal,
)
from pipeline.kafka.progress import CHAIN
from pipeline.kafka.topics import topic_ids, topic_specs
from pipeline.kafka.worker import EXIT_FAILED, EXIT_NOT_YET, RoleWorker, Standing, end, fail

log = logging.getLogger("fluxplain.watchdog")

CHECK_S = 2.0
"""Seconds between two looks at the progress."""

TOPICS_CHECK_S = 10.0
"""Seconds between two looks at the topics."""

REQUEST_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of a role at one moment.

    Attributes
    ----------
    now
        Seconds, of any clock that only goes forward.
    standings
        This worker's partitions.
    ends
        Partition → offset of the next message to come; None if the broker does not answer.
    committed
        Partition → what the group has committed; only needed of a worker without partitions.
    refusal
        Why the broker does not let this worker in, if that is why it does not answer.
    """

    now: float
    standings: Sequence[Standing] = ()
    ends: Mapping[int, int] | None = None
    committed: Mapping[int, int] = field(default_factory=dict)
    refusal: str | None = None


class Progress:
    """Tells how long nothing has moved although something waits.

    Parameters
    ----------
    stall_s
        Seconds after which messages that wait must have moved on.
    interval_s
        Seconds between two checkpoints: a commit may take that much longer.
    """

    def __init__(self, stall_s: float, interval_s: float) -> None:
        self._taking = _Timers(stall_s)
        self._committing = _Timers(stall_s + interval_s)
        self._stall_s = stall_s
        self._refusal: str | None = None
        self._refused_since: float | None = None
        self.lag = 0
        self.broker_answers = False

    def see(self, sight: Sight) -> None:
        """Take what is seen now."""
        self.broker_answers = sight.ends is not None
        self._see_refusal(sight)
        if sight.ends is None:
            # a broker that is away comes back; a new start would not make that sooner
            self._taking.forget()
            self._committing.forget()
            return
        ends = sight.ends
        taken = {s.partition: (s.next_offset, ends.get(s.partition, 0)) for s in sight.standings}
        done = {s.partition: (s.committed_offset, s.next_offset) for s in sight.standings}
        if not sight.standings:
            # nobody commits what waits, and it is not given to this worker: it lost its group
            done = {p: (offset, ends.get(p, 0)) for p, offset in sight.committed.items()}
        self.lag = sum(max(end - offset, 0) for offset, end in (taken or done).values())
        self._taking.see(sight.now, taken)
        self._committing.see(sight.now, done)

    def _see_refusal(self, sight: Sight) -> None:
        if sight.refusal is None:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = sight.now
        since = self._refused_since
        overdue = since is not None and sight.now - since >= self._stall_s
        # a new start reads secrets anew; if it is refused too, it says so
        self._refusal = sight.refusal if overdue else None

    def stalled(self) -> str | None:
        """Return what does not move, for people; None if all is well."""
        if self._refusal:
            return self._refusal
        for timers, what in ((self._taking, "taken"), (self._committing, "committed")):
            if timers.overdue:
                partitions = ", ".join(map(str, sorted(timers.overdue)))
                return (
                    f"nothing of partition {partitions} was {what} for {timers.limit_s:.0f} s, "
                    "although messages wait and the broker answers"
                )
        return None


class _Timers:
    """For each partition, since when an offset stands below its goal."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.overdue: set[int] = set()
        self._since: dict[int, tuple[int, float]] = {}

    def see(self, now: float, partitions: Mapping[int, tuple[int, int]]) -> None:
        waiting = {p: offset for p, (offset, goal) in partitions.items() if offset < goal}
        self._since = {
            p: self._since[p] if self._since.get(p, (None,))[0] == offset else (offset, now)
            for p, offset in waiting.items()
        }
        self.overdue = {p for p, (_, since) in self._since.items() if now - since >= self.limit_s}

    def forget(self) -> None:
        self._since = {}
        self.overdue = set()


class Watchdog:
    """Looks at a worker and its topics from a thread, and ends it when it does not go on.

    Parameters
    ----------
    config, role
        Settings, and whose worker.
    worker
        What is watched.
    """

    def __init__(self, config: Config, role: Role, worker: RoleWorker) -> None:
        self._config = config
        self._worker = worker
        self.role = role
        self.topic = config.topic(dict(CHAIN)[role])
        self.progress = Progress(config.health.stall_s, config.checkpoint.interval_s)
        self._topics = _Topics(config, self.topic)
        self._errors: list[KafkaError] = []
        self._refused: str | None = None
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": config.group(role),  # asked about, never joined
                "enable.auto.commit": False,
                "error_cb": self._errors.append,
            }
        )

    @property
    def standings(self) -> list[Standing]:
        """How far the worker is with each of its partitions."""
        return self._worker.standings()

    @property
    def is_ready(self) -> bool:
        """Whether the worker has its share of the partitions, and the broker answers."""
        return self._worker.is_ready and self.progress.broker_answers

    def start(self) -> None:
        """Watch, until the process ends."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def _run(self) -> None:
        topics_at = time.monotonic()
        try:
            while True:
                time.sleep(CHECK_S)
                self._check_progress()
                if time.monotonic() - topics_at >= TOPICS_CHECK_S:
                    topics_at = time.monotonic()
                    self._check_topics()
        except Exception as error:
            fail(f"{self.role}: nobody watches any more", error)

    def _check_progress(self) -> None:
        self.progress.see(self._look())
        if stalled := self.progress.stalled():
            log.critical("%s: %s: ending, to be started again", self.role, stalled)
            end(EXIT_FAILED)

    def _check_topics(self) -> None:
        if problem := self._topics.look(self._consumer):
            log.critical("%s: %s: ending, to be started again", self.role, problem)
            end(EXIT_NOT_YET)

    def _look(self) -> Sight:
        # the worker's offsets first: what it takes meanwhile is no progress missed
        standings = self._worker.standings()
        try:
            partitions = [s.partition for s in standings]
            committed: dict[int, int] = {}
            if not standings:
                known = self._consumer.list_topics(self.topic, timeout=REQUEST_TIMEOUT_S)
                partitions = list(known.topics[self.topic].partitions)
                asked = [TopicPartition(self.topic, p) for p in partitions]
                answers = self._consumer.committed(asked, timeout=REQUEST_TIMEOUT_S)
                committed = {tp.partition: max(tp.offset, 0) for tp in answers}
            ends = log_offsets(
                self._consumer, self.topic, partitions, OFFSET_END, REQUEST_TIMEOUT_S
            )
        except KafkaException as error:
            return Sight(time.monotonic(), standings, refusal=self._refusal(error.args[0]))
        self._refused = None
        return Sight(time.monotonic(), standings, ends, committed)

    def _refusal(self, error: KafkaError) -> str | None:
        """Return why the broker does not let this worker in, if that is why it failed.

        librdkafka tells it once, and then not again for half a minute: it holds until something
        else is told, or the broker answers.
        """
        self._errors.clear()
        told = self._consumer.poll(0)  # calls error_cb; what ACLs do not allow comes as a message
        problems = [each for each in self._errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
        denied = (told and told.error()) or error
        reasons = (
            no_answer(self._config, problems),
            refusal(self._config, f"cannot read {self.topic}", denied),
        )
        reason = next((str(each) for each in reasons if isinstance(each, AccessError)), None)
        if reason or problems:
            self._refused = reason
        return self._refused


class _Topics:
    """The pipeline's topics as they were at the start, and what became of them."""

    def __init__(self, config: Config, source: str) -> None:
        self._config = config
        self._source = source
        self._source_id = topic_ids(config).get(source)
        self._partitions = {
            name: len(topic.partitions) for name, topic in cluster(config).topics.items()
        }
        self._missing: set[str] = set()

    def look(self, consumer: Consumer) -> str | None:
        """Return what makes going on useless, for people."""
        try:
            names = [spec.name for spec in topic_specs(self._config)]
            counts = {name: _partition_count(consumer, name) for name in names}
            source_id = topic_ids(self._config).get(self._source)
        except (KafkaException, BrokerError):
            return None
        self._tell_more_partitions(counts)
        missing = {name for name, count in counts.items() if not count}
        gone, self._missing = missing & self._missing, missing  # one look may be a broker's start
        if gone:
            return f"the topics {', '.join(sorted(gone))} were deleted"
        if self._source_id and source_id and source_id != self._source_id:
            return f"the topic {self._source} was deleted and made anew"
        return None

    def _tell_more_partitions(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            before = self._partitions.get(name, count)
            if count > before > 0:
                log.info("%s has %d partitions now, %d before", name, count, before)
            self._partitions[name] = count


def _partition_count(consumer: Consumer, topic: str) -> int:
    # of a consumer: asking creates no topic
    metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics[topic]
    return 0 if metadata.error else len(metadata.partitions)
