"""The metrics of one worker process, in a registry of their own."""

import platform
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from fluxplain import __version__
from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.metrics.model_time import ModelCollector
from fluxplain.kafka.metrics.record_counts import PublishedCollector

STEP_BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
)

CHECKPOINT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)


class WorkerMetrics:
    """The counters and timers of a worker, in one registry."""

    def __init__(self, config: Config, replica: Replica) -> None:
        role = str(replica)
        # process_start_time_seconds says it once for all
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._build = Info(
            "fluxplain_build", "Versions that run; always 1.", ["role"], registry=self.registry
        )
        self._build.labels(role).info(
            {
                "version": __version__,
                "python": platform.python_version(),
                "faust": version("faust-streaming"),
                "river": version("river"),
            }
        )
        self.step = self._histogram(
            role,
            "fluxplain_step_seconds",
            "Seconds of the role's work on one message, without reading and sending; its _count is "
            "the messages taken.",
            STEP_BUCKETS,
        )
        self.checkpoint = self._histogram(
            role,
            "fluxplain_checkpoint_seconds",
            "Seconds of a checkpoint of all partitions of the worker: until the outputs have "
            "arrived, the states are safe and the offsets committed.",
            CHECKPOINT_BUCKETS,
        )
        self.outdated = Counter(
            "fluxplain_outdated_messages",
            "Messages that were ignored, because their writer no longer owned its partition; its "
            "successor wrote them again.",
            ["role"],
            registry=self.registry,
        ).labels(role)
        self.published = PublishedCollector(config, role)
        self.registry.register(self.published)
        self.model = ModelCollector(role)
        if replica.role == "model":  # the others have none
            self.registry.register(self.model)

    def _histogram(
        self, role: str, name: str, meaning: str, buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(name, meaning, ["role"], registry=self.registry, buckets=buckets).labels(
            role
        )
