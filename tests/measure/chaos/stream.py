"""The stream and its settings: what is fed, and what the reference makes of it."""

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from threading import Event
from typing import Any

import orjson
from river.datasets import synth

from fluxplain.config import Config, load_config
from fluxplain.schemas.late_label import LabelValue
from fluxplain.stages import Message
from tests.behaviour.late_labels import Delays, Labelled, late_labels
from tests.kit.command import FailedError
from tests.kit.kafka_pipeline import Published, reference_of
from tests.kit.settings import FEATURES
from tests.kit.streams import HOSTILE
from tests.measure.chaos.feed import Feed

PARTITIONS = (0, 1)
"""Of ``features``: two streams, so that two model workers have work."""

HOSTILE_EVERY = 50

SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "label": {"type": "integer", "topic": True},
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


UNJOINED: dict[str, Any] = {**SETTINGS, "label": {"type": "integer"}}
"""The same without joined topics: each observation brings its label."""


def records(
    partition: int, drift_at: int, most_delay: int, seed: int, *, joined: bool
) -> Iterator[bytes | LabelValue]:
    """Return an endless stream of observations and of labels that come later, or with them.

    Its concept changes once, and there are hostile records in both topics.
    """
    concepts: list[Iterable[Labelled]] = [
        synth.Agrawal(classification_function=1, seed=seed + partition).take(drift_at),
        synth.Agrawal(classification_function=2, seed=seed + partition),
    ]
    samples = chain.from_iterable(concepts)
    late = map(LabelValue, HOSTILE) if joined else ()
    hostile: Iterator[bytes | LabelValue] = cycle([*HOSTILE, *late])
    stream = _late(samples, most_delay, seed + partition) if joined else _labelled(samples)
    for i, sent in enumerate(stream):
        if i % HOSTILE_EVERY == HOSTILE_EVERY // 2:
            yield next(hostile)
        yield sent


def _late(samples: Iterable[Labelled], most: int, seed: int) -> Iterator[bytes | LabelValue]:
    for sent in late_labels(samples, Delays(most=most), seed=seed):
        yield sent.value if sent.topic == "features" else LabelValue(sent.value)


def _labelled(samples: Iterable[Labelled]) -> Iterator[bytes]:
    for i, (x, y) in enumerate(samples):
        yield orjson.dumps({"id": str(i), "ts": i, "x": x, "y": y})


@dataclass(frozen=True, slots=True)
class Stream:
    """What is fed into one partition.

    Attributes
    ----------
    partition
        Of ``features``.
    records
        How many there are at least, observations and labels.
    most_delay
        How many observations later a label comes, at most.
    seed
        Of the generator.
    joined
        Whether labels come later, in a topic of their own.
    """

    partition: int
    records: int
    most_delay: int
    seed: int
    joined: bool = True

    def __iter__(self) -> Iterator[bytes | LabelValue]:
        """Return the records, without end; the concept changes in the middle."""
        drift_at = self.records // (4 if self.joined else 2)
        told = self.most_delay, self.seed
        return records(self.partition, drift_at, *told, joined=self.joined)


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
        self.fed: list[bytes | LabelValue] = []
        self.may_end = Event()

    def _recorded(self) -> Iterator[bytes | LabelValue]:
        for value in self.stream:
            if len(self.fed) >= self.stream.records and self.may_end.is_set():
                return
            self.fed.append(value)
            yield value


class Reference:
    """What the local pipeline publishes for a stream, computed meanwhile in another process.

    It takes the observations and labels in the order in which the join role has passed them on.
    """

    def __init__(self, config_path: Path, stream: Stream) -> None:
        # "spawn" forks no threads of librdkafka
        context = get_context("spawn")
        self._joined: Queue[Message | None] = context.Queue()
        self._published: Queue[Published] = context.Queue()
        self._process = context.Process(
            target=_compute,
            args=(config_path, stream.partition, self._joined, self._published),
            daemon=True,
        )
        self._process.start()
        self.partition = stream.partition
        self._offered = 0

    def offer(self, joined: Sequence[Message]) -> None:
        """Hand over what was passed on until now."""
        for message in joined[self._offered :]:
            self._offered += 1
            self._joined.put(message)

    def published(self, joined: Sequence[Message]) -> Published:
        """Return what must be published, once that is all; waiting for it."""
        self.offer(joined)
        self._joined.put(None)
        while True:
            try:
                return self._published.get(timeout=5.0)
            except Empty:
                if not self._process.is_alive():
                    raise FailedError("the reference ended without a result") from None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._joined.cancel_join_thread()


def _compute(
    config_path: Path,
    partition: int,
    joined: "Queue[Message | None]",
    published: "Queue[Published]",
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.nice(10)
    messages = iter(joined.get, None)
    published.put(dict(reference_of(load_config(config_path), messages, partition)))
