"""Makes metric families from current values."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Labels = tuple[str, ...]
"""The values of a family's labels."""

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


def gauge(
    name: str, meaning: str, labels: Sequence[str], values: Mapping[Labels, float]
) -> GaugeMetricFamily:
    """Return a gauge with a value for each tuple of labels."""
    return _filled(GaugeMetricFamily(name, meaning, labels=labels), values)


def counter(
    name: str, meaning: str, labels: Sequence[str], values: Mapping[Labels, float]
) -> CounterMetricFamily:
    """Return a counter likewise; ``_total`` is added to its name."""
    return _filled(CounterMetricFamily(name, meaning, labels=labels), values)


def _filled(family: Family, values: Mapping[Labels, float]) -> Family:
    for each, value in values.items():
        family.add_metric(each, value)
    return family
