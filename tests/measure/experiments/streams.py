"""The data streams of the experiments, also with drift."""

import csv
import gzip
import hashlib
import math
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Record = tuple[dict[str, Any], int]
"""Features and class."""

HALF_HOURS = 48

VICPRICE_VARIES = 17_424
"""Records of elec2 before the first one in which ``vicprice`` is another."""

ELEC2_SHA256 = "cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff"
WEATHER_SHA256 = "3c38f05bdc5c4cb115f122414c66976e3662c875d96d7199d9e47fc46aff150e"
"""Of the data, uncompressed."""


def elec2() -> list[Record]:
    """Return the electricity market of New South Wales: 45,312 half-hours, without a gap.

    The file lacks the attributes ``date`` and ``day`` that the papers have. They follow from the
    order: the day, counted from the first and scaled to [0, 1], and the day of the week, from 1
    for Monday; the first one is Tuesday, 7 May 1996.
    """
    rows = _rows("elec2.csv.gz", ELEC2_SHA256)
    last_day = len(rows) // HALF_HOURS - 1
    records = []
    for t, row in enumerate(rows):
        day = t // HALF_HOURS
        y = int(row.pop("class"))
        x = {"date": day / last_day, "day": 1 + (day + 1) % 7}
        records.append((x | {name: float(value) for name, value in row.items()}, y))
    return records


def weather() -> list[Record]:
    """Return the weather of Bellevue, Nebraska: 18,159 days in order, and whether it rained."""
    rows = _rows("weather.csv.gz", WEATHER_SHA256)
    return [
        ({name: float(value) for name, value in row.items()}, int(y))
        for row in rows
        for y in [row.pop("target")]
    ]


def _rows(name: str, sha256: str) -> list[dict[str, str]]:
    """Return the rows of a file. Other data would give other results: it is refused."""
    path = Path(os.environ.get("DATA", "../shared/data")) / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: name its folder by the variable DATA")
    text = gzip.decompress(path.read_bytes())
    if hashlib.sha256(text).hexdigest() != sha256:
        raise ValueError(f"{path} has other data than the results rest on, whose SHA-256 is known")
    return list(csv.DictReader(text.decode().splitlines()))


def shuffled(records: Iterable[Record], seed: int) -> list[Record]:
    records = list(records)
    random.Random(seed).shuffle(records)
    return records


def switched(records: Iterable[Record], pairs: Sequence[Sequence[str]]) -> Iterator[Record]:
    """Yield the records with the values of each pair of features exchanged."""
    for x, y in records:
        exchanged = {a: x[b] for pair in pairs for a, b in (pair, pair[::-1])}
        yield x | exchanged, y


def drifting(
    before: Iterable[Record], after: Iterable[Record], *, at: int, width: int, seed: int
) -> Iterator[Record]:
    """Yield records of one stream, and ever more of those in the same place of another one.

    The probability of the other one is a sigmoid, as in River's ``ConceptDriftStream``: at the
    record ``at``, counted from 1, both are as likely, and the other takes over in about ``width``.

    Examples
    --------
    >>> old, new = [({"a": 0}, 0)] * 10, [({"a": 1}, 1)] * 10
    >>> [y for _, y in drifting(old, new, at=6, width=1, seed=1)]
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    """
    rng = random.Random(seed)
    for t, (old, new) in enumerate(zip(before, after, strict=False), 1):
        probability = 1.0 / (1.0 + math.exp(-4.0 * (t - at) / width))
        yield new if rng.random() < probability else old
