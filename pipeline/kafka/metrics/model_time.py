"""Metrics of the time that a worker's model takes."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, get_args

from prometheus_client import Metric
from prometheus_client.registry import Collector

from fluxplain.kafka.metrics.families import counter
from fluxplain.schemas.methods import Method
from fluxplain.stages.metering import Work

T = TypeVar("T")


class ModelCollector(Collector):
    """Times the model's calls: a :class:`~fluxplain.stages.metering.Meter`.

    One call serves all methods, so its seconds are divided in proportion to their inputs.
    """

    def __init__(self, role: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self._role = role
        self._clock = clock
        works: tuple[Work, ...] = (*get_args(Method), "prediction", "learning")
        self._seconds: dict[Work, float] = dict.fromkeys(works, 0.0)

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        """Make a call and add its seconds, even if it fails."""
        began_at = self._clock()
        try:
            return call()
        finally:
            of_one = (self._clock() - began_at) / max(sum(shares.values()), 1)
            for work, inputs in shares.items():
                self._seconds[work] += inputs * of_one

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        role, seconds = self._role, self._seconds.copy()
        yield counter(
            "fluxplain_evaluation_seconds",
            "Seconds in which the model was asked about changed inputs. One call asks for all "
            "methods: each has as large a share of it as of its inputs.",
            ["role", "method"],
            {(role, method): seconds[method] for method in get_args(Method)},
        )
        yield counter(
            "fluxplain_prediction_seconds",
            "The share of the same calls that is the observation itself, which is one of the "
            "inputs.",
            ["role"],
            {(role,): seconds["prediction"]},
        )
        yield counter(
            "fluxplain_learning_seconds",
            "Seconds in which the model learned.",
            ["role"],
            {(role,): seconds["learning"]},
        )
