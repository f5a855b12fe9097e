"""How a worker stands at the moment when Prometheus asks."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from pipeline.kafka.metrics.families import Labels, gauge
from pipeline.kafka.watchdog import Watchdog
from pipeline.kafka.worker import RoleWorker
from schemas import stream_name


class StandingCollector(Collector):
    """Asks a worker, and the watchdog that looks at it; costs nothing until then.

    Parameters
    ----------
    worker, watchdog
        What is asked.
    """

    def __init__(self, worker: RoleWorker, watchdog: Watchdog) -> None:
        self._worker = worker
        self._watchdog = watchdog
        self._role = str(worker.part)

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        yield from self._of_partitions()
        progress = self._watchdog.progress
        yield self._of_worker(
            "fluxplain_lag_messages",
            "Messages of the worker's partitions that it has not taken yet; as of the last look, "
            "every two seconds.",
            # without partitions the lag is its group's, which others tell of
            progress.lag if self._watchdog.standings else 0,
        )
        yield self._of_worker(
            "fluxplain_ready",
            "Whether the worker has its share of the partitions, and the broker answers (1 or 0); "
            "as /readyz.",
            self._watchdog.is_ready,
        )
        yield self._of_worker(
            "fluxplain_broker_answers",
            "Whether the broker answers the worker (1 or 0).",
            progress.broker_answers,
        )
        yield gauge(
            "fluxplain_waits_for",
            "Partitions of the worker that wait for an announced model that is not in "
            "`model.directory` (model), for an answer of the schema registry (registry), or for a "
            "partition that a topic lacks (partition).",
            ["role", "what"],
            {(self._role, what): n for what, n in self._worker.waiting.items()},
        )
        yield self._of_worker(
            "fluxplain_outputs_waiting",
            "Messages that the broker has not acknowledged yet.",
            self._worker.outputs_waiting,
        )
        yield self._of_worker(
            "fluxplain_last_commit_timestamp_seconds",
            "When the worker committed last, or was started, in seconds since 1970.",
            self._worker.committed_at,
        )

    def _of_worker(self, name: str, meaning: str, value: float) -> Metric:
        return gauge(name, meaning, ["role"], {(self._role,): value})

    def _of_partitions(self) -> Iterator[Metric]:
        standings = {
            (self._role, stream_name(each.topic, each.partition)): each
            for each in self._watchdog.standings
        }
        saved = {key: each.saved for key, each in standings.items() if each.saved}
        families: list[tuple[str, str, dict[Labels, float]]] = [
            (
                "fluxplain_next_offset",
                "Offset of the next message to take of a partition of the role's input.",
                {key: each.next_offset for key, each in standings.items()},
            ),
            (
                "fluxplain_committed_offset",
                "All messages of a partition of the role's input below this offset are done for "
                "good.",
                {key: each.committed_offset for key, each in standings.items()},
            ),
            (
                "fluxplain_checkpoint_size_bytes",
                "Size of the state in the last checkpoint that this worker wrote of a partition of "
                "the role's input.",
                {key: each.size_bytes for key, each in saved.items()},
            ),
            (
                "fluxplain_checkpoint_timestamp_seconds",
                "When that checkpoint was written, in seconds since 1970.",
                {key: each.at for key, each in saved.items()},
            ),
        ]
        for name, meaning, values in families:
            yield gauge(name, meaning, ["role", "stream"], values)
