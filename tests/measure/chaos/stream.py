"""The stream and its settings: what is fed, and what the reference makes of it."""

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.queues import Queue
from queue import Empty
from threading import Event
from typing import Any

import orjson
from river.datasets import synth

from fluxplain.config import Config
from fluxplain.schemas.late_label import LabelValue
from fluxplain.stages import Message
from tests.behaviour.late_labels import Delays, Labelled, late_labels
from tests.kit.kafka_pipeline import Published, reference_of
from tests.kit.settings import FEATURES, QUICK_DRIFT, all_methods
from tests.kit.streams import HOSTILE
from tests.kit.waiting import FailedError
from tests.measure.chaos.feed import Feed

PARTITIONS = (0, 1)
"""Of ``features``: two streams, so that two model workers have work."""

HOSTILE_EVERY = 50

RAISE = 1.5
"""Factor of the salaries from the change of the concept on."""

SETTINGS: dict[str, Any] = {
    "features": FEATURES,
    "label": {"type": "integer", "topic": True},
    "model": {
        "factory": "river.tree:HoeffdingTreeClassifier",
        "params": {"grace_period": 50, "delta": 0.01, "leaf_prediction": "mc", "max_depth": 8},
    },
    "explain": {"loss": "brier", "alpha": 0.01, "emit_every": 5, **all_methods(20, 1, 3)},
    "drift": QUICK_DRIFT,
    "reasons": {"enabled": True, "share": 0.3, "reservoir_size": 20},
    "topics": {"features_partitions": len(PARTITIONS), "partitions": 4, "replication": 3},
}
"""All methods, reasons and causes, with a model that learns and costs little."""


UNJOINED: dict[str, Any] = {**SETTINGS, "label": {"type": "integer"}}
"""The same without joined topics: each observation brings its label."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is fed into one partition: at least so many observations and labels, without end.

    Its concept and its inputs change once, and there are hostile records in both topics.
    """

    partition: int
    records: int
    most_delay: int
    seed: int
    joined: bool = True

    def __iter__(self) -> Iterator[bytes | LabelValue]:
        late = map(LabelValue, HOSTILE) if self.joined else ()
        hostile: Iterator[bytes | LabelValue] = cycle([*HOSTILE, *late])
        for i, sent in enumerate(self._late() if self.joined else self._labelled()):
            if i % HOSTILE_EVERY == HOSTILE_EVERY // 2:
                yield next(hostile)
            yield sent

    def _samples(self) -> Iterator[Labelled]:
        drift_at, seed = self.records // (4 if self.joined else 2), self.seed + self.partition
        yield from synth.Agrawal(classification_function=1, seed=seed).take(drift_at)
        for x, y in synth.Agrawal(classification_function=2, seed=seed):
            yield {**x, "salary": RAISE * x["salary"]}, y

    def _late(self) -> Iterator[bytes | LabelValue]:
        delays, seed = Delays(most=self.most_delay), self.seed + self.partition
        for sent in late_labels(self._samples(), delays, seed=seed):
            yield sent.value if sent.topic == "features" else LabelValue(sent.value)

    def _labelled(self) -> Iterator[bytes]:
        for i, (x, y) in enumerate(self._samples()):
            yield orjson.dumps({"id": str(i), "ts": i, "x": x, "y": y})


class RecordedFeed(Feed):
    """Feeds a stream until `may_end` says that all is done, and keeps what it has `fed`."""

    def __init__(self, config: Config, stream: Stream, rate: float) -> None:
        super().__init__(config, stream.partition, self._recorded(), rate)
        self.stream = stream
        self.fed: dict[str, list[bytes]] = {"features": [], "labels": []}
        self.may_end = Event()

    def _recorded(self) -> Iterator[bytes | LabelValue]:
        for count, value in enumerate(self.stream):
            if count >= self.stream.records and self.may_end.is_set():
                return
            if isinstance(value, LabelValue):
                self.fed["labels"].append(value.value)
            else:
                self.fed["features"].append(value)
            yield value


class Reference:
    """What the local pipeline publishes for a stream, computed meanwhile in another process.

    It takes the observations and labels in the order in which the join role has passed them on.
    """

    def __init__(self, config: Config, partition: int) -> None:
        # "spawn" forks no threads of librdkafka
        context = get_context("spawn")
        self._joined: Queue[Message | None] = context.Queue()
        self._published: Queue[Published] = context.Queue()
        self._process = context.Process(
            target=_compute, args=(config, partition, self._joined, self._published), daemon=True
        )
        self._process.start()
        self.partition = partition
        self._offered = 0

    def offer(self, joined: Sequence[Message]) -> None:
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
        self._process.kill()
        self._process.join()
        self._joined.cancel_join_thread()


def _compute(
    config: Config,
    partition: int,
    joined: "Queue[Message | None]",
    published: "Queue[Published]",
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.nice(10)
    published.put(dict(reference_of(config, iter(joined.get, None), partition)))
