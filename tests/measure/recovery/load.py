"""What is measured: workers under a steady stream in every partition, with changes all the time."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from deploy.kafka import Cluster
from tests.kit.command import Clock
from tests.kit.settings import write_config
from tests.kit.workers import Workers
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
}

TOPICS = {"features_partitions": 2, "partitions": len(stream.SETTINGS["features"])}
"""Partitions for two workers of each role, and none of them idle."""


class Load:
    """Brokers, no worker yet, and the stream, which flows until the stack ends.

    A worker that starts while `static` holds is a static member of its group.
    """

    def __init__(
        self, stack: ExitStack, folder: Path, clock: Clock, brokers: int, **topics: Any
    ) -> None:
        self.static = False
        self.cluster = stack.enter_context(Cluster(brokers=brokers, tell=clock.say))
        settings = {**SETTINGS, "topics": {**TOPICS, **topics}}
        path = write_config(folder / "recovery.toml", settings)
        self.workers = Workers(
            path, self.cluster.bootstrap_servers, folder, environment_of=self._environment_of
        )
        self.config = self.workers.config
        stack.enter_context(self.workers)
        self.feeds: Sequence[Feed] = [
            Feed(self.config, each, stream.observations(DRIFT_EVERY, seed=each), RATE)
            for each in range(TOPICS["features_partitions"])
        ]
        for feed in self.feeds:
            stack.enter_context(closing(feed)).start()

    def _environment_of(self, name: str) -> dict[str, str]:
        return {"FLUXPLAIN_KAFKA__GROUP_INSTANCE_ID": name} if self.static else {}
