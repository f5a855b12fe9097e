"""Fills a store from the topics, in its own thread."""

import threading
import time
from collections.abc import Callable, Mapping

from confluent_kafka import Message

from fluxplain.config import Config
from fluxplain.kafka.topics.progress import Backlog, LagMonitor
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.feature_names import REAL_NAMES, FeatureNames
from fluxplain.results.pipeline_status import RoleStatus
from fluxplain.results.published import decoded
from fluxplain.results.store import UNREADABLE, Store
from fluxplain.schemas import SHOWN

NEWEST = 200_000
"""Messages of each partition to read at the start: about 10 s per partition on one core."""

BATCH = 250
"""Messages added while holding the lock once; readers of the store wait that long."""


class Feed:
    """Reads outputs and notes without a consumer group, and monitors each role's lag.

    The store gets the records with the ``names`` to show, by default with the real ones.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        on_failed: Callable[[], object],
        names: FeatureNames = REAL_NAMES,
    ) -> None:
        self._config = config
        self._store = store
        self._names = names
        self._on_failed = on_failed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Start reading at the newest messages that are in the topics."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and close the connection."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self.error = error
            self._on_failed()

    def _read(self) -> None:
        config, status = self._config, self._store.status
        with (
            LagMonitor(config) as lag,
            TopicReader(config, list(SHOWN), from_beginning=True, newest=NEWEST) as reader,
        ):
            status.to_read, status.has_roles = reader.backlog, True
            while not self._stop.is_set():
                status.read = status.to_read - reader.backlog
                status.is_loaded = not reader.backlog
                self._take(reader, reader.poll(0.2, limit=BATCH))
                status.trouble = reader.trouble or lag.trouble
                status.roles = role_statuses(config, lag.latest)

    def _take(self, reader: TopicReader, messages: list[Message]) -> None:
        records = [
            (decoded(reader, message), message.partition() or 0, max(message.timestamp()[1], 0))
            for message in messages
        ]
        now = time.monotonic() if self._store.status.is_loaded else None
        with self._store.lock:
            for record, partition, at in records:
                if record is None:
                    # skip foreign messages
                    self._store.left_out[UNREADABLE] += 1
                else:
                    self._store.add(self._names.record(record), partition, now, at=at)


def role_statuses(config: Config, latest: Mapping[str, Backlog] | None) -> list[RoleStatus]:
    """Return the status of each role; none if the broker has not answered."""
    known, first = latest or {}, config.replicas()[0].role
    return [
        RoleStatus(
            part=str(replica),
            topic=", ".join(config.inputs(replica.role)),
            lag=known[str(replica)].lag,
            moved_at=known[str(replica)].moved_at,
            reads_source=replica.role == first,
            waits_since=known[str(replica)].waits_since,
        )
        for replica in config.replicas()
        if str(replica) in known
    ]
