"""A process that only predicts and learns: what a model holds by itself.

``python -m tests.measure.benchmarks.bare CONFIG RECORDS …`` prints by how many bytes it has grown
after so many records. What a worker holds beyond that is the pipeline's.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import psutil
from river import linear_model, preprocessing
from river.datasets import synth

from fluxplain.config import load_config

NOISE = 0.1
"""Perturbation of the values: trees go on growing."""


def scaled_logistic() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def noisy(records: int) -> Iterator[bytes]:
    """Yield records of the first concept of agrawal, as they stand in ``features``."""
    data = synth.Agrawal(classification_function=1, seed=7, perturbation=NOISE).take(records)
    for x, y in data:
        yield orjson.dumps({"x": x, "y": bool(y)})


def growth(config_path: Path, marks: Sequence[int]) -> list[int]:
    """Return the bytes that were added after so many records."""
    config = load_config(config_path)
    model, process, grown = config.make_model(), psutil.Process(), []
    before = process.memory_info().rss
    for i, value in enumerate(noisy(max(marks)), start=1):
        record = orjson.loads(value)
        x = {feature: record["x"][feature] for feature in config.features}
        model.predict_proba_one(x)
        model.learn_one(x, record["y"])
        if i in marks:
            grown.append(process.memory_info().rss - before)
    return grown


if __name__ == "__main__":
    print(*growth(Path(sys.argv[1]), [int(mark) for mark in sys.argv[2:]]))
