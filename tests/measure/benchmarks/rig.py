"""A broker of its own, and the pipeline's workers on it, each a process on this machine."""

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import orjson

from deploy.kafka import Cluster
from deploy.kafka.cluster import say as tell
from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.embedded import CHECKPOINT_INTERVAL_S, EmbeddedBroker
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.settings import write_config
from tests.kit.support import agrawal
from tests.kit.waiting import FailedError
from tests.kit.workers import Workers
from tests.measure.benchmarks import library_streams
from tests.measure.benchmarks.timing import Run
from tests.measure.chaos.feed import Feed

Broker = Literal["Kafka", "embedded broker"]

BROKERS: tuple[Broker, ...] = ("Kafka", "embedded broker")

FEATURES = list(next(library_streams.agrawal())[0])

ALL = ["ipfi", "isage", "ipdp"]

METHODS = {"full set": ALL, "iPFI and iSAGE": ALL[:2]}

POLL_S = 0.1

QUIET_S = 4.0
"""After so long without an explanation all are there."""

TIMEOUT_S = 300.0


def settings(methods: list[str]) -> dict[str, Any]:
    """Return the settings of a pipeline that explains a forest of 10 trees."""
    return {
        "features": dict.fromkeys(FEATURES, "numeric"),
        "label": {"type": "integer"},
        "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 10}},
        "explain": {"methods": methods, "isage": {"inner_samples": 1}},
    }


def observations(records: int) -> list[bytes]:
    """Return records of the first concept of agrawal, as they stand in ``features``."""
    return [orjson.dumps({"x": x, "y": y}) for x, y in agrawal(records, seed=7)]


@dataclass(frozen=True, slots=True)
class Rig:
    """A broker with the pipeline's topics, and workers that are still to be started.

    ``kafka`` is None for the embedded broker; ``started`` has the names of the workers.
    """

    run: Run
    config: Config
    workers: Workers
    kafka: Cluster | None
    started: list[str] = field(default_factory=list)

    def start(self, *replicas: Replica | Role) -> None:
        """Start a worker of each role or shard, and wait until all have partitions."""
        self.started.extend(map(self.workers.add, replicas))
        for _ in self.ticks("the workers have partitions"):
            if all(map(self.workers.next_offsets, self.started)):
                return

    def ticks(self, what: str, timeout_s: float = TIMEOUT_S) -> Iterator[float]:
        """Yield the monotonic time now and then, to look whether something is done.

        If it is not done in time, or a worker has died, that is a FailedError.
        """
        deadline = time.monotonic() + timeout_s
        while (now := time.monotonic()) < deadline:
            if dead := set(self.started) - self.workers.running().keys():
                raise FailedError(f"workers died: {', '.join(sorted(dead))}")
            yield now
            time.sleep(POLL_S)
        raise FailedError(f"not in {timeout_s:.0f} s: {what}")


@contextmanager
def rig(run: Run, broker: Broker, fields: dict[str, Any]) -> Iterator[Rig]:
    """Start a broker; it ends with all workers at the end of the context."""
    with ExitStack() as stack:
        kafka: Cluster | None = None
        if broker == "Kafka":
            kafka = stack.enter_context(Cluster(brokers=1, tell=tell))
            servers = kafka.bootstrap_servers
        else:
            servers = stack.enter_context(EmbeddedBroker()).bootstrap_servers
            fields = {**fields, "checkpoint": {"interval_s": CHECKPOINT_INTERVAL_S}}
        path = write_config(run.folder / "bench.toml", fields)
        # those of another cluster would be refused
        stack.callback(shutil.rmtree, run.folder / "checkpoints", ignore_errors=True)
        workers = stack.enter_context(Workers(path, servers, run.folder))
        yield Rig(run, workers.config, workers, kafka)


def full_speed(it: Rig, records: int, steady: int) -> float:
    """Start all roles, and return the records a second from features to explanations.

    The ``steady`` first of the records are not measured: everything is warm after them, and the
    trees have grown.
    """
    it.start(*ROLES)
    begun = ended = 0.0
    skipped = explained = 0
    with (
        closing(GroupOffsets(it.config, "model", "predictions")) as predictions,
        closing(GroupOffsets(it.config, "model", "explanations")) as explanations,
        closing(Feed(it.config, 0, observations(records), rate=None)) as feed,
    ):
        feed.start()
        for now in it.ticks(f"{records:,} records go through"):
            predicted = sum(predictions.ends().values())
            before, explained = explained, sum(explanations.ends().values())
            it.run.clock.progress(partial("{:,} of {:,} predicted".format, predicted, records))
            feed.check()
            if not begun and predicted >= steady:
                begun, skipped = now, predicted
            if explained > before:
                ended = now
            elif predicted >= records and now - ended > QUIET_S:
                break
    return (records - skipped) / (ended - begun)
