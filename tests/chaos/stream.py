"""The stream and its settings: what is fed, and what the reference makes of it."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, cycle, islice
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import Any

import orjson
from river.datasets import synth

from pipeline.config import Config, load_config
from tests.behaviour.conftest import FEATURES
from tests.behaviour.kafka_pipeline import Published, reference
from tests.behaviour.test_pipeline import HOSTILE
from tests.chaos.feed import Feed

PARTITIONS = (0, 1)
"""Of ``features``: two streams, so that two model workers have work."""

HOSTILE_EVERY = 50

SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "label": {"type": "integer"},
    "model": {
        "factory": "river.tree:HoeffdingTreeClassifier",
        "params": {"grace_period": 50, "delta": 0.01, "leaf_prediction": "mc", "max_depth": 8},
    },
    "explain": {
        "loss": "brier",
        "alpha": 0.01,
        "emit_every": 5,
        "ipfi": {"reservoir_size": 20},
        "isage": {"reservoir_size": 20, "inner_samples": 1},
        "ipdp": {"storage_size": 20, "grid_size": 3},
    },
    # streams so short must show changes
    "drift": {"delta": 0.002, "params": {"min_window_length": 5}},
    "topics": {"features_partitions": len(PARTITIONS), "partitions": 4, "replication": 3},
}
"""All methods, with a model that learns and costs little."""


def observations(partition: int, drift_at: int, seed: int) -> Iterator[bytes]:
    """Return an endless stream whose concept changes once, with hostile records in it."""
    concepts = [
        synth.Agrawal(classification_function=1, seed=seed + partition).take(drift_at),
        synth.Agrawal(classification_function=2, seed=seed + partition),
    ]
    hostile = cycle(HOSTILE)
    for i, (x, y) in zip(count(), chain.from_iterable(concepts), strict=False):
        if i % HOSTILE_EVERY == HOSTILE_EVERY // 2:
            yield next(hostile)
        yield orjson.dumps({"x": x, "y": y, "id": f"{partition}-{i}", "ts": i})


@dataclass(frozen=True, slots=True)
class Stream:
    """What is fed into one partition.

    Attributes
    ----------
    partition
        Of ``features``.
    records
        How many there are at least; the concept changes after half of them.
    seed
        Of the generator.
    """

    partition: int
    records: int
    seed: int

    def __iter__(self) -> Iterator[bytes]:
        """Return the records, without end."""
        return observations(self.partition, self.records // 2, self.seed)


class RecordedFeed(Feed):
    """Feeds a stream, and on until everything was done.

    Attributes
    ----------
    fed
        What was sent.
    may_end
        To be set when everything was done.
    """

    def __init__(self, config: Config, stream: Stream, rate: float) -> None:
        super().__init__(config, stream.partition, self._recorded(), rate)
        self.stream = stream
        self.fed: list[bytes] = []
        self.may_end = Event()

    def _recorded(self) -> Iterator[bytes]:
        for value in self.stream:
            if len(self.fed) >= self.stream.records and self.may_end.is_set():
                return
            self.fed.append(value)
            yield value


class Reference:
    """What the local pipeline publishes for a stream, computed meanwhile in another process."""

    def __init__(self, config_path: Path, stream: Stream) -> None:
        self._connection, theirs = Pipe()
        # "spawn" forks no threads of librdkafka
        self._process = get_context("spawn").Process(
            target=_compute, args=(config_path, stream, theirs), daemon=True
        )
        self._process.start()
        theirs.close()

    def finish(self, records: int) -> None:
        """Say how many records there were in the end."""
        self._connection.send(records)

    def is_done(self) -> bool:
        """Return whether it is computed."""
        return self._connection.poll()

    def published(self) -> Published:
        """Return it, waiting for it if need be."""
        published: Published = self._connection.recv()
        return published

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _compute(config_path: Path, stream: Stream, connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.nice(10)

    def values() -> Iterator[bytes]:
        source = iter(stream)
        yield from islice(source, stream.records)
        yield from islice(source, connection.recv() - stream.records)

    connection.send(dict(reference(load_config(config_path), values(), stream.partition)))
