"""What the models of the table learn: loans, a function of ten numbers, and sensors that break."""

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from river.datasets import synth

from tests.kit.support import AGRAWAL_FEATURES, agrawal
from tests.measure.experiments.sensor_network import break_sensor, readings

Records = list[dict[str, Any]]

LOANS = AGRAWAL_FEATURES
FRIEDMAN = {f"x{i}": "numeric" for i in range(10)}
SENSORS = {f"sensor_{i}": "numeric" for i in range(8)}

BROKEN = "sensor_3"

MOST = 10_000
"""Readings there are; shorter streams are the first of them."""

FAULT = 0.9
"""After this share of the records the sensor breaks."""


def loans(records: int, seed: int = 7) -> Records:
    """Return loan applications; salary and age decide."""
    return [{"x": x, "y": bool(y)} for x, y in agrawal(records, seed)]


def friedman(records: int) -> Records:
    """Return a function of the first five of ten numbers, with noise."""
    data = synth.Friedman(seed=7).take(records)
    return [{"x": {f"x{i}": v for i, v in x.items()}, "y": float(y)} for x, y in data]


def sensors(records: int) -> Records:
    """Return the pressures at some sensors, of which one breaks, without labels."""
    return [{"x": record["x"]} for record in faults(records)]


def faults(records: int) -> Records:
    """Return the same, and whether the sensor is broken."""
    rng = np.random.default_rng(3)
    pressures = readings(rng, MOST)[:records, : len(SENSORS)]
    begin = int(FAULT * records)
    break_sensor(pressures, list(SENSORS).index(BROKEN), "noise", range(begin, records), rng)
    return [
        {"x": dict(zip(SENSORS, row, strict=True)), "y": hour >= begin}
        for hour, row in enumerate(pressures.tolist())
    ]


def messages(stream: Callable[[int], Records], records: int) -> list[bytes]:
    """Return the first records of a stream as they stand in ``features``."""
    return [orjson.dumps(record) for record in stream(records)]
