"""A model worker with a fault in it, as a process of its own; see test_losing_data.py.

Usage: ``python -m tests.behaviour.faulty_worker CONFIG FAULT``
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import model
from pipeline.config import load_config
from pipeline.kafka.app import run
from pipeline.kafka.outbox import Outbox
from pipeline.stages import ModelStage
from schemas import Record

AT_SEQ = 60
"""Where the fault shows: after explanations have begun."""


sound_step = ModelStage.step


def raising_step(stage: ModelStage, sample: Any) -> Sequence[Record]:
    """Fail in a way that is no record's fault."""
    if sample.seq == AT_SEQ:
        raise RuntimeError("a fault of the stage")
    return sound_step(stage, sample)


def huge_step(stage: ModelStage, sample: Any) -> Sequence[Record]:
    """Publish a record that no broker takes."""
    records = sound_step(stage, sample)
    if sample.seq == AT_SEQ:
        object.__setattr__(records[0], "id", "x" * 2_000_000)
    return records


async def die(self: Outbox) -> None:
    """Die as by a crash, before the outputs have arrived."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(config: str, fault: str) -> None:
    """Run the worker."""
    if fault == "raises":
        ModelStage.step = raising_step  # type: ignore[method-assign,assignment]
    elif fault == "huge-output":
        ModelStage.step = huge_step  # type: ignore[method-assign,assignment]
    elif fault == "dies-before-delivery":
        Outbox.delivered = die  # type: ignore[method-assign]
    else:
        assert fault == "none"
    run(model.create_app(load_config(Path(config))))


if __name__ == "__main__":
    main(*sys.argv[1:])
