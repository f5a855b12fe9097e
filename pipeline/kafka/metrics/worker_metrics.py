"""The metrics of one worker process, in a registry of their own."""

import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TypeVar, get_args

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
from fluxplain.kafka.metrics.record_counts import PublishedCollector
from fluxplain.schemas.methods import Method
from fluxplain.stages.metering import Work

T = TypeVar("T")

STEP_BUCKETS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
)

CHECKPOINT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)

COMMIT_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

REBALANCE_BUCKETS = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


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
            "fluxplain_build", "Running versions; always 1.", ["role"], registry=self.registry
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
            "Seconds that the role worked on one message, without reading and sending; its _count "
            "is the number of messages processed.",
            STEP_BUCKETS,
        )
        self.checkpoint = self._histogram(
            role,
            "fluxplain_checkpoint_seconds",
            "Seconds of a checkpoint of all partitions of the worker, until the outputs are "
            "acknowledged, the states stored and the offsets committed.",
            CHECKPOINT_BUCKETS,
        )
        self.commit = self._histogram(
            role,
            "fluxplain_commit_seconds",
            "Seconds until the broker confirmed a commit.",
            COMMIT_BUCKETS,
        )
        self.rebalance = self._histogram(
            role,
            "fluxplain_rebalance_seconds",
            "Seconds of a rebalance, from the loss of the partitions until their states are "
            "loaded; its _count is the number of rebalances.",
            REBALANCE_BUCKETS,
        )
        self.outdated = Counter(
            "fluxplain_outdated_messages",
            "Messages ignored because their writer no longer owned its partition; the new owner "
            "wrote them again.",
            ["role"],
            registry=self.registry,
        ).labels(role)
        self.published = PublishedCollector(config, role)
        self.registry.register(self.published)
        # the other roles have no model
        self.model = ModelTimes(role, self.registry if replica.role == "model" else None)

    def _histogram(
        self, role: str, name: str, meaning: str, buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(name, meaning, ["role"], registry=self.registry, buckets=buckets).labels(
            role
        )


class ModelTimes:
    """Times the model's calls: a :class:`~fluxplain.stages.metering.Meter`.

    One call serves all methods, so its seconds are divided in proportion to their inputs.
    """

    def __init__(
        self,
        role: str,
        registry: CollectorRegistry | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        evaluation = Counter(
            "fluxplain_evaluation_seconds",
            "Seconds in which the model was evaluated on changed inputs. One call serves all "
            "methods; its time is divided in proportion to their inputs.",
            ["role", "method"],
            registry=registry,
        )
        prediction = Counter(
            "fluxplain_prediction_seconds",
            "Seconds of the same calls that count for the observation itself, which is one of the "
            "inputs.",
            ["role"],
            registry=registry,
        )
        learning = Counter(
            "fluxplain_learning_seconds",
            "Seconds in which the model learned.",
            ["role"],
            registry=registry,
        )
        reasons = Counter(
            "fluxplain_reasons_seconds",
            "Seconds in which the model was asked about the reasons for single outputs.",
            ["role"],
            registry=registry,
        )
        contrasts = Counter(
            "fluxplain_contrasts_seconds",
            "Seconds in which the model was compared with an older one.",
            ["role"],
            registry=registry,
        )
        self._seconds: dict[Work, Counter] = {
            **{method: evaluation.labels(role, method) for method in get_args(Method)},
            "prediction": prediction.labels(role),
            "learning": learning.labels(role),
            "reasons": reasons.labels(role),
            "contrasts": contrasts.labels(role),
        }

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        """Make a call and add its seconds, even if it fails."""
        began_at = self._clock()
        try:
            return call()
        finally:
            of_one = (self._clock() - began_at) / max(sum(shares.values()), 1)
            for work, inputs in shares.items():
                self._seconds[work].inc(inputs * of_one)
