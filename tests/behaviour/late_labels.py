"""A stream whose labels come later: some much later, some twice, some never."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from river.datasets import synth

START_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Delays:
    """How late labels come.

    Attributes
    ----------
    most
        Longest delay, in observations; each delay from 1 on is as likely.
    missing, repeated
        Shares of the labels that never come, and that come twice.
    """

    most: int
    missing: float = 0.05
    repeated: float = 0.01


@dataclass(frozen=True, slots=True)
class Sent:
    """A record, the topic that it is for, and when, in milliseconds since 1970."""

    topic: str
    record: dict[str, Any]
    timestamp: int

    @property
    def value(self) -> bytes:
        """The record as the value of a message."""
        return orjson.dumps(self.record)


def late_labels(n: int, delays: Delays, *, seed: int = 1, concept: int = 1) -> Iterator[Sent]:
    """Yield n observations, one every 10 ms, and their labels, in the order of their time."""
    rng = random.Random(seed)
    due: dict[int, list[dict[str, Any]]] = {}
    stream = synth.Agrawal(classification_function=concept, seed=seed).take(n)
    for i, (x, y) in enumerate(stream):
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
