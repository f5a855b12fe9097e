"""What the model worker holds, and whether it grows with the stream."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from tests.kit.settings import write_config
from tests.kit.waiting import FailedError
from tests.measure.benchmarks.bare import noisy
from tests.measure.benchmarks.rig import ALL, rig
from tests.measure.benchmarks.timing import Figure, Run
from tests.measure.soak.samples import MARKS, MB, Samples

RECORDS = 200_000

TIMEOUT_S = 1200.0

MODELS: dict[str, dict[str, Any]] = {
    "logistic regression": {"factory": "tests.measure.benchmarks.bare:scaled_logistic"},
    "tree that splits early": {
        "factory": "river.tree:HoeffdingTreeClassifier",
        "params": {"grace_period": 20, "delta": 0.01, "tau": 0.5},
    },
}
"""One of a fixed size, and one that grows with the stream. A forest would take several times as
long."""


def long_stream(run: Run) -> Iterator[Figure]:
    """Measure what the model worker holds after 20,000 and after 200,000 records.

    It runs alone on Kafka, with all methods, three features and grids of three points: few
    questions, so that the stream is soon through. Of its resident memory is subtracted what the
    model itself holds: what a process that only predicts and learns the same records has grown by.
    """
    for name, model in MODELS.items():
        alone, worker = _at_marks(run, settings(model))
        first, last = _marks()
        early, late = (held - own for held, own in zip(worker, alone, strict=True))
        yield Figure(
            f"model worker with a {name}: memory beyond the model's own after {last:,} records, "
            f"against after {first:,}",
            f"{late / MB:.1f} MB (model: {alone[1] / MB:.1f} MB)",
            f"{early / MB:.1f} MB (model: {alone[0] / MB:.1f} MB)",
            late / early,
            bar="0.9 to 1.1",
        )


def settings(model: dict[str, Any]) -> dict[str, Any]:
    return {
        "features": dict.fromkeys(("salary", "age", "elevel"), "numeric"),
        "model": model,
        "explain": {"methods": ALL, "isage": {"inner_samples": 1}, "ipdp": {"grid_size": 3}},
    }


def _marks() -> tuple[int, int]:
    """Return the numbers of records: those of the first and the last mark of a soak."""
    return int(RECORDS * MARKS[0]), int(RECORDS * MARKS[-1])


def _at_marks(run: Run, fields: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    path = write_config(run.folder / "bare.toml", fields)
    command = [
        sys.executable,
        "-m",
        "tests.measure.benchmarks.bare",
        str(path),
        *map(str, _marks()),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bare:
        try:
            worker = _worker(run, fields)
            printed, _ = bare.communicate()
        finally:
            bare.kill()  # if it still runs
    if bare.returncode:
        raise FailedError("the process that only learns has failed")
    early, late = map(int, printed.split())
    return (early, late), worker


def _worker(run: Run, fields: dict[str, Any]) -> tuple[int, int]:
    samples = Samples(run.folder / "checkpoints")
    with rig(run, "Kafka", fields) as it:

        def report(sent: int, _through: int) -> None:
            run.clock.progress(lambda: f"{sent:,} of {RECORDS:,} records sent")

        replay(it.config, noisy(RECORDS), ReplayOptions(), report=report)
        it.start("model")
        with closing(GroupOffsets(it.config, "model", "predictions")) as predictions:
            for _ in it.ticks(f"{RECORDS:,} records are predicted", TIMEOUT_S):
                done = sum(predictions.ends().values())
                samples.take_if_due(it.workers.running(), done)
                run.clock.progress(partial("{:,} of {:,} predicted".format, done, RECORDS))
                if done >= RECORDS:
                    break
    [marks] = samples.at_marks(RECORDS).values()
    return marks[0].rss, marks[-1].rss
