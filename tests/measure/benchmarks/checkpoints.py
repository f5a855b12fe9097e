"""What a forest holds and what a checkpoint of it costs, as arrays and as River's objects.

``python -m tests.measure.benchmarks.checkpoints FILE`` unpickles a model, and prints by how many
bytes the process has grown, the bytes of a checkpoint of it, and the microseconds that it takes.
"""

import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from river import forest
from river.datasets import synth

from fluxplain.forest import as_arrays
from tests.measure.benchmarks.timing import Figure, Run

RECORDS = 50_000

NOISE = 0.1
"""Perturbation of the values: trees go on growing."""

REPEATED = 5


def forests_held(run: Run) -> Iterator[Figure]:
    """Measure forests that have learned 50,000 records, in processes of their own.

    River's forest has the same trees: it is the converted one.
    """
    for n_models in (10, 50):
        run.clock.say(f"ARF-{n_models}")
        arrays = as_arrays(forest.ARFClassifier(n_models=n_models, seed=1))
        data = synth.Agrawal(classification_function=1, seed=7, perturbation=NOISE)
        for x, y in data.take(RECORDS):
            arrays.learn_one(x, y)
        path = run.folder / "model.pickle"
        ours, rivers = (_held(path, each) for each in (arrays, arrays.to_river()))
        name = f"ARF-{n_models} after {RECORDS:,} records, arrays ÷ River's objects"
        titles = ("memory", "size of a checkpoint", "time of a checkpoint")
        forms = ("{:.1f} MB", "{:.1f} MB", "{:.1f} ms")
        for title, form, own, other in zip(titles, forms, ours, rivers, strict=True):
            yield Figure.of(f"{name}: {title}", own, other, form)


def _held(path: Path, model: Any) -> tuple[float, ...]:
    path.write_bytes(pickle.dumps(model))
    command = [sys.executable, "-m", "tests.measure.benchmarks.checkpoints", str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(map(float, printed.split()))


def _measure(path: Path) -> None:
    import fluxplain.forest.arf_classifier  # noqa: F401, PLC0415  is not what the model holds

    process = psutil.Process()
    before = process.memory_info().rss
    model = pickle.loads(path.read_bytes())
    grown, seconds = process.memory_info().rss - before, []
    for _ in range(REPEATED):
        begin = time.perf_counter()
        size = len(pickle.dumps(model, protocol=pickle.HIGHEST_PROTOCOL))
        seconds.append(time.perf_counter() - begin)
    print(grown / 1e6, size / 1e6, statistics.median(seconds) * 1e3)


if __name__ == "__main__":
    _measure(Path(sys.argv[1]))
