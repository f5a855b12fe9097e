"""Metrics of a worker's current status and of its partitions."""

import time
from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.registry import Collector

from fluxplain.kafka.metrics.families import Labels, gauge
from fluxplain.kafka.worker.partition import PartitionProgress
from fluxplain.kafka.worker.status import WorkerStatus
from fluxplain.kafka.worker.watchdog import Watchdog


class StatusCollector(Collector):
    """Reads the status of a worker and its watchdog when Prometheus scrapes."""

    def __init__(self, status: WorkerStatus, watchdog: Watchdog) -> None:
        self._status = status
        self._watchdog = watchdog
        self._role = str(status.context.replica)
        self._since: dict[Labels, float] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        health = self._watchdog.health()
        yield from self._of_partitions(health.partitions)
        yield self._of_worker(
            "fluxplain_lag_messages",
            "Messages in the worker's partitions that it has not processed yet; updated every two "
            "seconds.",
            # without partitions the lag is that of its group, which others export
            health.lag if health.partitions else 0,
        )
        yield self._of_worker(
            "fluxplain_ready",
            "Whether the worker is ready (1 or 0), as reported by /readyz.",
            health.is_ready,
        )
        yield self._of_worker(
            "fluxplain_broker_answers",
            "Whether the broker answers the worker (1 or 0).",
            health.broker_answers,
        )
        yield gauge(
            "fluxplain_waits_for",
            "Partitions of the worker that wait for an announced model that is missing from "
            "`model.directory` (model), for a response of the schema registry (registry), or for "
            "a partition that a topic lacks (partition).",
            ["role", "what"],
            {(self._role, what): n for what, n in self._status.waiting.items()},
        )
        yield self._of_worker(
            "fluxplain_outputs_waiting",
            "Messages that the broker has not acknowledged yet.",
            self._status.context.outbox.waiting,
        )
        yield self._of_worker(
            "fluxplain_last_commit_timestamp_seconds",
            "Time of the last commit of the worker's partitions, also by an earlier worker, or of "
            "its start if none is known, in seconds since 1970.",
            self._status.committer.committed_at,
        )

    def _of_worker(self, name: str, meaning: str, value: float) -> Metric:
        return gauge(name, meaning, ["role"], {(self._role,): value})

    def _of_partitions(self, partitions: Sequence[PartitionProgress]) -> Iterator[Metric]:
        known = {(self._role, str(each.tp)): each for each in partitions}
        saved = {key: each.saved for key, each in known.items() if each.saved}
        now = time.time()
        self._since = {key: self._since.get(key, now) for key in known}
        families: list[tuple[str, str, dict[Labels, float]]] = [
            (
                "fluxplain_next_offset",
                "Offset of the next message to process in a partition of the role's input.",
                {key: each.next_offset for key, each in known.items()},
            ),
            (
                "fluxplain_committed_offset",
                "Committed offset of a partition of the role's input; all messages below it are "
                "done for good.",
                {key: each.committed_offset for key, each in known.items()},
            ),
            (
                "fluxplain_checkpoint_size_bytes",
                "Size of the state in the worker's last checkpoint of a partition of the role's "
                "input.",
                {key: each.size_bytes for key, each in saved.items()},
            ),
            (
                "fluxplain_checkpoint_timestamp_seconds",
                "Time of that checkpoint, in seconds since 1970; before the first one, of the "
                "first scrape with this partition.",
                self._since | {key: each.at for key, each in saved.items()},
            ),
        ]
        for name, meaning, values in families:
            yield gauge(name, meaning, ["role", "stream"], values)
