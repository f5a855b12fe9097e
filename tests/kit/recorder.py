"""A producer that records what it is given."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.explain.method import Answers
from fluxplain.schemas import Evaluation
from fluxplain.stages.evaluated import Evaluated

Sent = tuple[str, bytes, bytes | None, int | None]


class Recorder:
    waiting = 0

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.headers: list[Mapping[str, bytes] | None] = []

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        place: int | None = None,
        *,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        self.sent.append((topic, value, key, place))
        self.headers.append(headers)

    def partitions(self, topic: str) -> int:
        return 4

    def serve(self) -> None:
        pass

    async def flushed(self) -> None:
        pass


def evaluation(seq: int, feature: str = "age", points: int = 3, **fields: Any) -> Evaluation:
    row = [0.25, 0.75]
    values: dict[str, Any] = {
        "stream": "fluxplain.features-0",
        "feature": feature,
        "previous_seq": seq - 1,
        "seqs": [seq],
        "ts": [None],
        "y": [1],
        "loss": [0.3],
        "classes": [0, 1],
        "prediction": [row],
        "coverage": [1.0],
        "skipped": [0],
        "outputs": {"ipfi": [[row]], "isage": [[row, row]], "ipdp": [[row] * points]},
        "points": {"ipdp": [[float(i) for i in range(points)]]},
    }
    return Evaluation(**{**values, **fields})


def answers(
    seq: int, feature: str = "age", points: int = 3, labels: tuple[int, ...] = (0, 1)
) -> Evaluated:
    """Return the answers about an observation, of one feature's iPDP."""
    row = np.full((1, len(labels)), 1.0 / len(labels))
    axis = np.arange(points, dtype=float)
    return Evaluated(
        "fluxplain.features-0",
        seq,
        None,
        1,
        0.3,
        0,
        Table(labels, row),
        {"ipdp": Answers([feature], labels, [row.repeat(points, axis=0)], [axis])},
        {feature: ("ipfi", "isage", "ipdp")},
        {feature: seq - 1},
        {feature: labels},
        {feature: 1.0},
        {feature: 1.0},
    )
