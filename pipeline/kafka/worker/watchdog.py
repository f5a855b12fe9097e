"""Ends a worker that makes no progress, or whose topics were deleted.

Consumers fail silently: the process runs, its connections are open, and no message arrives. So a
separate thread, with its own client, compares the progress with the broker's logs. A worker without
progress ends, and its supervisor restarts it.
"""

import logging
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.client import (
    AccessError,
    BrokerError,
    TopicPartition,
    asking_consumer,
    cluster,
    log_offsets,
    no_answer,
    refusal,
)
from fluxplain.kafka.exits import (
    EXIT_FAILED,
    EXIT_NOT_YET,
    end,
    fail,
    refuse,
    replaced_settings,
    shorter_log,
)
from fluxplain.kafka.faust.peek import first_offset
from fluxplain.kafka.timeouts import WATCH_REQUEST_S
from fluxplain.kafka.topics.create import topic_ids, topic_specs
from fluxplain.kafka.worker.health import Health
from fluxplain.kafka.worker.stall_detector import ProgressSample, StallDetector
from fluxplain.kafka.worker.status import WorkerStatus

log = logging.getLogger("fluxplain.watchdog")

CHECK_S = 2.0
"""Seconds between two checks of the progress."""

TOPICS_CHECK_S = 10.0
"""Seconds between two checks of the topics."""


class Watchdog:
    """Watches a worker and its topics in a thread, and ends the process if it must."""

    def __init__(self, status: WorkerStatus) -> None:
        self._status = status
        self._config = config = status.context.config
        self._replica = status.context.replica
        self._topics = [config.topic(name) for name in config.inputs(self._replica.role)]
        self._stall_detector = StallDetector(config.health.stall_s)
        self._source = _Topics(config, self._topics)
        self._errors: list[KafkaError] = []
        self._refused: str | None = None
        settings = {"enable.partition.eof": True, "error_cb": self._errors.append}
        self._consumer = asking_consumer(config, config.group(self._replica), **settings)
        self._seen: dict[TopicPartition, tuple[int, int]] = {}
        self._empty: dict[TopicPartition, tuple[int, int]] = {}

    def health(self) -> Health:
        """Return the worker's health; it is ready only while the broker answers."""
        status, stall_detector = self._status, self._stall_detector
        is_ready = status.is_ready and stall_detector.broker_answers
        return Health(
            self._replica,
            status.waits_for,
            is_ready,
            stall_detector.stalled(),
            stall_detector.broker_answers,
            stall_detector.lag,
            status.partitions(),
        )

    def start(self) -> None:
        """Start the thread, which runs until the process ends."""
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
            fail(f"{self._replica}: the watchdog failed", error)

    def _check_progress(self) -> None:
        self._stall_detector.see(self._look())
        if stalled := self._stall_detector.stalled():
            log.critical("%s: %s; ending so that it is restarted", self._replica, stalled)
            end(EXIT_FAILED)
        if self._stall_detector.shortened:
            partition, end_of_log = self._stall_detector.shortened
            slot = Slot.of(self._replica, *partition.tp)
            refuse(shorter_log(slot, partition.next_offset, end_of_log))

    def _check_topics(self) -> None:
        if problem := self._source.look(self._consumer):
            log.critical("%s: %s; ending so that it is restarted", self._replica, problem)
            end(EXIT_NOT_YET)
        with suppress(BrokerError):
            if self._status.claims.is_replaced():
                refuse(replaced_settings(self._replica))

    def _look(self) -> ProgressSample:
        # the worker's offsets first: otherwise its progress meanwhile would look like a stall
        partitions = self._status.partitions()
        committer, is_held_up = self._status.committer, self._status.is_held_up
        is_saving, interval_s = committer.is_saving, committer.interval_s
        try:
            offsets = {p.tp: p.next_offset for p in partitions} or self._committed()
            ends = self._log_offsets(offsets, OFFSET_END)
            waiting = {tp: self._waiting(tp, offsets[tp], ends[tp]) for tp in ends}
        except KafkaException as error:
            refused = self._refusal(error.args[0])
            return ProgressSample(time.monotonic(), partitions, refusal=refused)
        self._refused = None
        return ProgressSample(
            *(time.monotonic(), partitions, waiting, {} if partitions else offsets),
            is_saving=is_saving,
            is_held_up=is_held_up,
            interval_s=interval_s,
        )

    def _committed(self) -> dict[TopicPartition, int]:
        """Return the group's next offset of each partition, for a worker without any."""
        tps = [
            TopicPartition(topic, partition)
            for topic in self._topics
            for partition in range(_partition_count(self._consumer, topic))
        ]
        asked = [confluent_kafka.TopicPartition(*tp) for tp in tps]
        answers = self._consumer.committed(asked, timeout=WATCH_REQUEST_S)
        starts = self._log_offsets(tps, OFFSET_BEGINNING)
        committed = {(each.topic, each.partition): each.offset for each in answers}
        return {tp: max(committed[tp], starts[tp]) for tp in tps}

    def _log_offsets(
        self, tps: Collection[TopicPartition], which: int
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for topic in self._topics:
            if own := [tp.partition for tp in tps if tp.topic == topic]:
                offsets = log_offsets(self._consumer, topic, own, which, WATCH_REQUEST_S)
                found |= {TopicPartition(topic, each): offsets[each] for each in offsets}
        return found

    def _waiting(self, tp: TopicPartition, offset: int, log_end: int) -> int:
        """Return the end of the messages that wait from an offset on.

        Transaction markers after the last message look like a message that is never taken. So if
        the offsets stand still, the log is read once to find out.
        """
        stood = (offset, log_end)
        stands, self._seen[tp] = self._seen.get(tp) == stood, stood
        if offset < log_end and stands and self._empty.get(tp) != stood:
            with suppress(KafkaException):
                if first_offset(self._config, *tp, offset, WATCH_REQUEST_S) is None:
                    self._empty[tp] = stood
        return offset if self._empty.get(tp) == stood else log_end

    def _refusal(self, error: KafkaError) -> str | None:
        """Return the reason if the broker refused this worker.

        librdkafka reports a refusal only every half minute, so it holds until another error is
        reported or the broker answers.
        """
        self._errors.clear()
        reported = self._consumer.poll(0)  # calls error_cb; an ACL's refusal comes as a message
        problems = [each for each in self._errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
        denied = (reported and reported.error()) or error
        what = f"cannot read {', '.join(self._topics)}"
        errors = no_answer(self._config, problems), refusal(self._config, what, denied)
        refused = next((str(each) for each in errors if isinstance(each, AccessError)), None)
        if refused or problems:
            self._refused = refused
        return self._refused


class _Topics:
    """Detects deleted and re-created topics, by comparison with the start."""

    def __init__(self, config: Config, sources: Sequence[str]) -> None:
        self._config = config
        ids = topic_ids(config)
        self._sources = {source: ids[source] for source in sources if source in ids}
        self._partitions = {
            name: len(topic.partitions) for name, topic in cluster(config).topics.items()
        }
        self._missing: set[str] = set()

    def look(self, consumer: Consumer) -> str | None:
        """Return the reason to end the worker, if any; log added partitions."""
        try:
            names = [spec.name for spec in topic_specs(self._config)]
            counts = {name: _partition_count(consumer, name) for name in names}
            ids = topic_ids(self._config)
        except (KafkaException, BrokerError):
            return None
        for name, count in counts.items():
            if count > (before := self._partitions.get(name, count)) > 0:
                log.info("%s now has %d partitions instead of %d", name, count, before)
        self._partitions |= counts
        missing = {name for name, count in counts.items() if not count}
        # seen twice: during a broker's start topics may be missing for a moment
        gone, self._missing = missing & self._missing, missing
        if gone:
            return f"the topics {', '.join(sorted(gone))} were deleted"
        for source, source_id in self._sources.items():
            if ids.get(source, source_id) != source_id:
                return f"the topic {source} was deleted and created again"
        return None


def _partition_count(consumer: Consumer, topic: str) -> int:
    # a consumer's request creates no topic
    metadata = consumer.list_topics(topic, timeout=WATCH_REQUEST_S).topics[topic]
    return 0 if metadata.error else len(metadata.partitions)
