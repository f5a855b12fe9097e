"""A stream whose labels come later: some much later, some twice, some never."""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

Labelled = tuple[dict[str, Any], Any]

START_MS = int(time.time()) * 1_000
"""Brokers delete what is old by its timestamp."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How late labels come.

    `most` is the longest delay, in observations; each delay from 1 on is as likely. `missing` and
    `repeated` are the shares of the labels that never come, and that come twice.
    """

    most: int
    missing: float = 0.05
    repeated: float = 0.01


@dataclass(frozen=True, slots=True)
class Sent:
    """A record, the topic that it is for, and when, in milliseconds since 1970."""

    topic: Literal["features", "labels"]
    record: dict[str, Any]
    timestamp: int

    @property
    def value(self) -> bytes:
        """The record as the value of a message."""
        return orjson.dumps(self.record)


def late_labels(samples: Iterable[Labelled], delays: Delays, *, seed: int = 1) -> Iterator[Sent]:
    """Yield observations, one every 10 ms, and their labels, in the order of their time."""
    rng = random.Random(seed)
    due: dict[int, list[dict[str, Any]]] = {}
    for i, (x, y) in enumerate(samples):
        yield Sent("features", {"id": f"{seed}-{i}", "ts": i, "x": x}, START_MS + 10 * i)
        copies = 0 if rng.random() < delays.missing else 1 + (rng.random() < delays.repeated)
        for _ in range(copies):
            label = {"id": f"{seed}-{i}", "y": y}
            due.setdefault(i + rng.randint(1, delays.most), []).append(label)
        for label in due.pop(i, ()):
            yield Sent("labels", label, START_MS + 10 * i + 5)
    for i in sorted(due):
        for label in due[i]:
            yield Sent("labels", label, START_MS + 10 * i + 5)
