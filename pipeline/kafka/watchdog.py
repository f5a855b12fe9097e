"""Notices a worker that lives but does not go on, and what happens to its topics meanwhile.

Consumers die quietly: the process runs, its connections are open, and no message comes any more.
So what is watched is progress against what waits, as the broker tells it, on a client and in a
thread of its own. A worker without progress ends itself; whoever supervises it starts it again.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import TopicMetadata

from pipeline.config import Config
from pipeline.kafka.checkpoints import Slot
from pipeline.kafka.client import (
    AccessError,
    BrokerError,
    Place,
    client_settings,
    cluster,
    log_offsets,
    no_answer,
    refusal,
)
from pipeline.kafka.exits import EXIT_FAILED, EXIT_NOT_YET, end, fail, refuse
from pipeline.kafka.peek import first_offset
from pipeline.kafka.stalls import Progress, Sight
from pipeline.kafka.timeouts import WATCH_REQUEST_S
from pipeline.kafka.topics import topic_ids, topic_specs
from pipeline.kafka.worker import RoleWorker, Standing, replaced_settings, shorter_log
from pipeline.parts import Part

log = logging.getLogger("fluxplain.watchdog")

CHECK_S = 2.0
"""Seconds between two looks at the progress."""

TOPICS_CHECK_S = 10.0
"""Seconds between two looks at the topics."""


class Watchdog:
    """Looks at a worker and its topics from a thread, and ends it when it does not go on.

    Parameters
    ----------
    config, part
        Settings, and whose worker.
    worker
        What is watched.
    """

    def __init__(self, config: Config, part: Part, worker: RoleWorker) -> None:
        self._config = config
        self._worker = worker
        self.part = part
        self.topics = [config.topic(name) for name in config.inputs(part.role)]
        self.progress = Progress(config.health.stall_s, config.checkpoint.interval_s)
        self._source = _Topics(config, self.topics)
        self._errors: list[KafkaError] = []
        self._refused: str | None = None
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": config.group(part),  # asked about, never joined
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "error_cb": self._errors.append,
            }
        )
        self._seen: dict[Place, tuple[int, int]] = {}
        self._empty: dict[Place, tuple[int, int]] = {}

    @property
    def standings(self) -> list[Standing]:
        """How far the worker is with each of its partitions."""
        return self._worker.standings()

    @property
    def waits_for(self) -> str | None:
        """What the worker cannot go on without, beside the broker, and why it is not there."""
        return self._worker.waits_for

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
            fail(f"{self.part}: nobody watches any more", error)

    def _check_progress(self) -> None:
        self.progress.see(self._look())
        if stalled := self.progress.stalled():
            log.critical("%s: %s: ending, to be started again", self.part, stalled)
            end(EXIT_FAILED)
        if shortened := self.progress.shortened():
            standing, end_of_log = shortened
            slot = Slot.of(self.part, *standing.place)
            refuse(shorter_log(slot, standing.next_offset, end_of_log))

    def _check_topics(self) -> None:
        if problem := self._source.look(self._consumer):
            log.critical("%s: %s: ending, to be started again", self.part, problem)
            end(EXIT_NOT_YET)
        with suppress(BrokerError):
            if self._worker.is_replaced():
                refuse(replaced_settings(self.part))

    def _look(self) -> Sight:
        # the worker's offsets first: what it takes meanwhile is no progress missed
        standings = self._worker.standings()
        is_saving, is_waiting = self._worker.is_saving, self._worker.is_held_up
        try:
            next_offsets = {s.place: s.next_offset for s in standings} or self._committed()
            ends = self._log_offsets(next_offsets, OFFSET_END)
            waiting = {p: self._waiting(p, next_offsets[p], ends[p]) for p in ends}
        except KafkaException as error:
            return Sight(time.monotonic(), standings, refusal=self._refusal(error.args[0]))
        self._refused = None
        committed = {} if standings else next_offsets
        return Sight(
            *(time.monotonic(), standings, waiting, committed),
            is_saving=is_saving,
            is_waiting=is_waiting,
        )

    def _committed(self) -> dict[Place, int]:
        """Return place → where the group goes on; asked by a worker without partitions."""
        places = [
            (topic, partition)
            for topic in self.topics
            for partition in _known(self._consumer, topic).partitions
        ]
        asked = [TopicPartition(*place) for place in places]
        answers = self._consumer.committed(asked, timeout=WATCH_REQUEST_S)
        starts = self._log_offsets(places, OFFSET_BEGINNING)
        committed = {(tp.topic, tp.partition): tp.offset for tp in answers}
        return {place: max(committed[place], starts[place]) for place in places}

    def _log_offsets(self, places: Collection[Place], which: int) -> dict[Place, int]:
        return {
            (topic, partition): offset
            for topic in self.topics
            if (own := [p for name, p in places if name == topic])
            for partition, offset in log_offsets(
                self._consumer, topic, own, which, WATCH_REQUEST_S
            ).items()
        }

    def _waiting(self, place: Place, offset: int, log_end: int) -> int:
        """Return the end of what waits from an offset on.

        Transactions leave marks in the log that no consumer gets: behind the last message they
        look like one that is never taken. So what stands still is read once, to see.
        """
        stood = (offset, log_end)
        stands, self._seen[place] = self._seen.get(place) == stood, stood
        if offset < log_end and stands and self._empty.get(place) != stood:
            if self._holds_messages(place, offset):
                return log_end
            self._empty[place] = stood
        return offset if self._empty.get(place) == stood else log_end

    def _holds_messages(self, place: Place, offset: int) -> bool:
        """Return whether a message comes from an offset on; also if that is not known in time."""
        try:
            return first_offset(self._config, *place, offset, WATCH_REQUEST_S) is not None
        except KafkaException:
            return True

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
            refusal(self._config, f"cannot read {', '.join(self.topics)}", denied),
        )
        reason = next((str(each) for each in reasons if isinstance(each, AccessError)), None)
        if reason or problems:
            self._refused = reason
        return self._refused


class _Topics:
    """The pipeline's topics as they were at the start, and what became of them."""

    def __init__(self, config: Config, sources: Sequence[str]) -> None:
        self._config = config
        ids = topic_ids(config)
        self._sources = {source: ids[source] for source in sources if source in ids}
        self._partitions = {
            name: len(topic.partitions) for name, topic in cluster(config).topics.items()
        }
        self._missing: set[str] = set()

    def look(self, consumer: Consumer) -> str | None:
        """Return what makes going on useless, for people."""
        try:
            names = [spec.name for spec in topic_specs(self._config)]
            counts = {name: _partition_count(consumer, name) for name in names}
            ids = topic_ids(self._config)
        except (KafkaException, BrokerError):
            return None
        self._tell_more_partitions(counts)
        missing = {name for name, count in counts.items() if not count}
        gone, self._missing = missing & self._missing, missing  # one look may be a broker's start
        if gone:
            return f"the topics {', '.join(sorted(gone))} were deleted"
        for source, source_id in self._sources.items():
            if ids.get(source, source_id) != source_id:
                return f"the topic {source} was deleted and made anew"
        return None

    def _tell_more_partitions(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            before = self._partitions.get(name, count)
            if count > before > 0:
                log.info("%s has %d partitions now, %d before", name, count, before)
            self._partitions[name] = count


def _known(consumer: Consumer, topic: str) -> TopicMetadata:
    # of a consumer: asking creates no topic
    return consumer.list_topics(topic, timeout=WATCH_REQUEST_S).topics[topic]


def _partition_count(consumer: Consumer, topic: str) -> int:
    metadata = _known(consumer, topic)
    return 0 if metadata.error else len(metadata.partitions)
