"""Metrics of the backlogs of all consumer groups."""

import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.registry import Collector

from fluxplain.kafka.metrics.families import gauge
from fluxplain.kafka.topics.backlogs import Answer, Backlogs


class BacklogCollector(Collector):
    """Reads the newest backlogs, and the age of the answers, when Prometheus scrapes."""

    def __init__(
        self, latest: Callable[[], Backlogs], answers: Callable[[], Sequence[Answer]]
    ) -> None:
        self._latest, self._answers = latest, answers

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        now, labels = time.time(), ["role", "stream"]
        found = {(name, str(tp)): each for (name, tp), each in self._latest().items()}
        yield gauge(
            "fluxplain_group_lag_messages",
            "Messages in a partition of a role's input that the role has not committed, whether or "
            "not it has workers. Exported by the dashboard.",
            labels,
            {key: each.lag for key, each in found.items()},
        )
        yield gauge(
            "fluxplain_group_oldest_age_seconds",
            "Seconds since the oldest of these messages was published, by its timestamp; 0 without "
            "any. Exported by the dashboard.",
            labels,
            {
                key: 0.0 if each.waits_since is None else max(now - each.waits_since, 0.0)
                for key, each in found.items()
            },
        )
        yield gauge(
            "fluxplain_group_answer_age_seconds",
            "Seconds since the broker answered about all input of a role, or since the dashboard "
            "asked for the first time. Exported by the dashboard.",
            ["role"],
            self._answer_ages(),
        )

    def _answer_ages(self) -> dict[tuple[str, ...], float]:
        now, ages = time.monotonic(), dict[tuple[str, ...], float]()
        for each in self._answers():
            key = (each.group,)
            ages[key] = max(ages.get(key, 0.0), now - each.at)
        return ages
