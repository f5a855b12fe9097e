"""The stream: a steady one in every partition, with changes all the time."""

from threading import Event, Thread
from typing import Any

from pipeline.config import Config
from pipeline.kafka.replay import ReplayOptions, replay
from tests.soak import stream

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


class Feed(Thread):
    """Feeds one partition until it is closed.

    Attributes
    ----------
    error
        Why it ended early.
    """

    def __init__(self, config: Config, partition: int) -> None:
        super().__init__(name=f"feed-{partition}", daemon=True)
        self.error: Exception | None = None
        self._config, self._partition = config, partition
        self._stopping = Event()

    def run(self) -> None:
        """Feed."""
        values = stream.observations(DRIFT_EVERY, seed=self._partition)
        options = ReplayOptions(partition=self._partition, rate=RATE)
        try:
            replay(self._config, values, options, stop=self._stopping)
        except Exception as error:
            self.error = error

    def close(self) -> None:
        """End."""
        self._stopping.set()
        if self.ident is not None:
            self.join()
