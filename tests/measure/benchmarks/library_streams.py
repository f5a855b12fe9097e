"""The streams of the library's benchmarks."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

from river.datasets import synth

from tests.measure.benchmarks.case import Record

ELEC2 = Path("../shared/data/elec2.csv.gz")


def agrawal() -> Iterator[Record]:
    """Yield the first concept."""
    return iter(synth.Agrawal(classification_function=1, seed=7))


def logistic_agrawal() -> Iterator[Record]:
    """Yield the first concept, with labels as logistic regression wants them."""
    return ((x, bool(y)) for x, y in agrawal())


def mixed_agrawal() -> Iterator[Record]:
    """Yield the first concept, its three classes of things as categories."""
    names = ("elevel", "car", "zipcode")
    return ((x | {name: f"{name} {x[name]}" for name in names}, y) for x, y in agrawal())


def friedman() -> Iterator[Record]:
    """Yield a stream with numbers as targets, d = 10."""
    return iter(synth.Friedman(seed=1))


def rbf(d: int) -> Iterator[Record]:
    """Yield two classes around fifty centres, of ``d`` features."""
    return iter(synth.RandomRBF(seed_model=1, seed_sample=2, n_features=d, n_centroids=50))


def elec2() -> Iterator[Record]:
    """Yield the electricity data."""
    with gzip.open(ELEC2, "rt", newline="") as file:
        for row in csv.DictReader(file):
            label = int(row.pop("class"))
            yield {name: float(value) for name, value in row.items()}, label
