"""The stream: a steady one in every partition, with changes all the time."""

from typing import Any

from fluxplain.config import Config
from tests.measure.chaos.feed import Feed
from tests.measure.soak import stream

RATE = 50.0
"""Records of each partition, a second."""

DRIFT_EVERY = 200
"""Records from one concept to the next: the drift role has something to say of every feature
each second."""

SETTINGS: dict[str, Any] = {
    **stream.SETTINGS,
    "explain": {**stream.SETTINGS["explain"], "alpha": 0.05},
    "topics": {"features_partitions": 2, "partitions": len(stream.SETTINGS["features"])},
}
"""Partitions for two workers of each role, and none of them idle."""


def feed(config: Config, partition: int) -> Feed:
    """Return what feeds one partition until it is closed."""
    return Feed(config, partition, stream.observations(DRIFT_EVERY, seed=partition), RATE)
