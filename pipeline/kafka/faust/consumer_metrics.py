"""Metrics from Faust's own counters.

Faust's Prometheus monitor is not used: it looks up half a dozen labelled series per message, counts
in milliseconds under unconventional names, has gauges named total, drops counters at each
rebalance, and measures the wrong duration of rebalances. The plain monitor counts in any case, so
this reads it and adds only rare events.
"""

from collections.abc import Iterator
from typing import Any

import faust
from faust.sensors import Monitor
from prometheus_client import CollectorRegistry, Histogram, Metric
from prometheus_client.registry import Collector

from fluxplain.kafka.metrics.families import counter

COMMIT_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

REBALANCE_BUCKETS = (0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def monitor(app: faust.App, role: str, registry: CollectorRegistry) -> None:
    """Export the counters of a Faust app, labelled by its role."""
    app.monitor = FaustMonitor(role, registry)
    registry.register(app.monitor)


class FaustMonitor(Monitor, Collector):
    """Faust's monitor, which also exports its counters, and durations of commits and rebalances."""

    def __init__(self, role: str, registry: CollectorRegistry) -> None:
        super().__init__()
        self._role = role
        self._commits = Histogram(
            "fluxplain_commit_seconds",
            "Seconds until the broker had taken a commit.",
            ["role"],
            registry=registry,
            buckets=COMMIT_BUCKETS,
        ).labels(role)
        self._rebalances = Histogram(
            "fluxplain_rebalance_seconds",
            "Seconds of a rebalance, from the loss of the partitions until their states are "
            "loaded; its _count is how many there were.",
            ["role"],
            registry=registry,
            buckets=REBALANCE_BUCKETS,
        ).labels(role)

    def on_commit_completed(self, consumer: Any, state: Any) -> None:
        """Observe the duration of a commit."""
        super().on_commit_completed(consumer, state)
        self._commits.observe(self.secs_since(state))

    def on_rebalance_end(self, app: Any, state: dict[str, Any]) -> None:
        """Observe the duration of a rebalance."""
        super().on_rebalance_end(app, state)
        self._rebalances.observe(state["latency_end"])

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the counters."""
        yield counter(
            "fluxplain_faust_messages_received",
            "Messages that Faust took from the broker, also those that are read again.",
            ["role"],
            {(self._role,): self.messages_received_total},
        )
        yield counter(
            "fluxplain_faust_buffer_full",
            "How often Faust stopped reading a partition because the role had read far enough "
            "ahead.",
            ["role"],
            {(self._role,): sum(self.topic_buffer_full.copy().values())},
        )
