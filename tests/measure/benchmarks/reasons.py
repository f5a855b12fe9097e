"""What reasons for a twentieth of the records cost, of the model stage and the whole pipeline."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.stages import Message, ModelStage, process
from tests.measure.benchmarks.library_streams import agrawal
from tests.measure.benchmarks.stage import FEW, settings
from tests.measure.benchmarks.timing import Figure, Run

TRAINED, MEASURED, BLOCK = 1_000, 2_000, 500
"""Records of a repeat before the measured ones, these, and how many each side takes at a time."""

REPEATS = 5

SHARE = 0.05

BAR = "at most 1.05"

MAJORITY = {"n_models": 10, "leaf_prediction": "mc"}

Take = Callable[[Message], object]


def share_of_reasons(run: Run) -> Iterator[Figure]:
    """Measure reasons for 5 % of the records: ARF-10 with majority leaves, agrawal, d = 9.

    The processor times of two sides, with reasons and without, which take turns in blocks of 500
    records; the median and the quartiles of the ratios of all blocks of five repeats.
    """
    made: dict[str, tuple[Callable[[Config], Take], dict[str, Any]]] = {
        "model stage that explains nothing else": (_stage, {"every": FEW}),
        "model stage with all three methods": (_stage, {}),
        "whole pipeline, local": (_pipeline, {}),
    }
    for name, (make, explain) in made.items():
        pairs = list[tuple[float, float]]()
        for repeat in range(REPEATS):
            run.clock.say(f"{name}, repeat {repeat + 1}")
            pairs += _times(make, explain, repeat)
        yield Figure.of_pairs(f"reasons of 5 %, {name}", pairs, "{:,.0f} µs", BAR)


def _times(
    make: Callable[[Config], Take], explain: dict[str, Any], repeat: int
) -> Iterator[tuple[float, float]]:
    """Yield the microseconds of a record with reasons and without, of each measured block."""
    begin = repeat * (TRAINED + MEASURED)
    records = list(itertools.islice(agrawal(), begin, begin + TRAINED + MEASURED))
    fields = settings(records[0][0], **explain)
    fields["model"]["params"] = {**MAJORITY, "seed": repeat}
    given = {"enabled": True, "share": SHARE}
    sides = [make(Config(**fields, reasons=given)), make(Config(**fields))]
    values = (orjson.dumps({"x": x, "y": y}) for x, y in records)
    messages = [Message("fluxplain.features", 0, i, None, each) for i, each in enumerate(values)]
    for number, start in enumerate(range(0, len(messages), BLOCK)):
        block, took = messages[start : start + BLOCK], [0.0, 0.0]
        for side in (0, 1) if number % 2 else (1, 0):
            took[side] = _time(sides[side], block)
        if start >= TRAINED:
            yield took[0] / BLOCK * 1e6, took[1] / BLOCK * 1e6


def _time(take: Take, block: list[Message]) -> float:
    begin = time.process_time()  # others may use the machine
    for message in block:
        take(message)
    return time.process_time() - begin


def _stage(config: Config) -> Take:
    stage = ModelStage(config, "fluxplain.features-0")
    return lambda message: process(stage, message)


def _pipeline(config: Config) -> Take:
    return LocalPipeline(config).take
