"""Metrics from Faust's own counters.

Faust's Prometheus monitor is not used: it looks up half a dozen labelled series per message, counts
in milliseconds under unconventional names, has gauges named total, drops counters at each
rebalance, and measures the wrong duration of rebalances. The plain monitor counts in any case.
"""

from collections.abc import Iterator
from typing import Any

from faust.sensors import Monitor
from prometheus_client import Metric
from prometheus_client.registry import Collector

from fluxplain.kafka.metrics.families import counter
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics


class FaustMonitor(Monitor, Collector):
    """Faust's monitor, which also exports its counters and the duration of rebalances."""

    def __init__(self, role: str, metrics: WorkerMetrics) -> None:
        super().__init__()
        self._role = role
        self._metrics = metrics
        metrics.registry.register(self)

    def on_message_in(self, tp: Any, offset: int, message: Any) -> None:
        """Count all messages of a delivery."""
        super().on_message_in(tp, offset, message)
        self.messages_received_total += len(message.records) - 1

    def on_rebalance_end(self, app: Any, state: dict[str, Any]) -> None:
        """Observe the duration of a rebalance."""
        super().on_rebalance_end(app, state)
        self._metrics.rebalance.observe(state["latency_end"])

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the counters."""
        yield self._counter(
            "fluxplain_faust_messages_received",
            "Messages that Faust received from the broker, including those read again.",
            self.messages_received_total,
        )
        yield self._counter(
            "fluxplain_faust_buffer_full",
            "Number of times that Faust stopped reading a partition because the role had read far "
            "enough ahead.",
            sum(self.topic_buffer_full.copy().values()),
        )

    def _counter(self, name: str, meaning: str, value: int) -> Metric:
        return counter(name, meaning, ["role"], {(self._role,): value})
