"""Runs the tasks of experiments that have no result yet, several at a time."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.measure.experiments.experiment import Task
from tests.measure.experiments.results import ResultsFile


def run_missing(
    files: Mapping[str, ResultsFile], *, runs: Mapping[str, int], jobs: int
) -> list[str]:
    """Run what has no result yet, and keep each result as soon as it is there.

    ``files`` and ``runs`` are by name of the experiment. Returned are the tasks that failed, with
    the error; the others were run.
    """
    failures = []
    # each process has one core; threads of its own would only get in the way
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # new interpreters: a fork of this one would have its threads' locks
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    with Progress(*columns, TimeElapsedColumn()) as progress:
        try:
            started: dict[Future[tuple[Any, float]], tuple[str, Task]] = {}
            for name, file in files.items():
                with _interruption_ignored():
                    missing = file.missing(runs[name])
                    started |= {pool.submit(_timed, task): (name, task) for task in missing}
            bar = progress.add_task("tasks", total=len(started))
            for future in as_completed(started):
                name, task = started[future]
                progress.advance(bar)
                try:
                    value, seconds = future.result()
                    files[name].add(task, value, seconds)
                    line = f"{name}, {task.key}: {seconds:.1f} s"
                except Exception as error:
                    failures.append(f"{name}, {task.key}: {type(error).__name__}: {error}")
                    line = f"failed: {failures[-1]}"
                progress.console.print(line, markup=False)
        except KeyboardInterrupt:
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    return failures


@contextmanager
def _interruption_ignored() -> Iterator[None]:
    """Start processes that Ctrl-C does not end, from their first moment on: the parent does it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which they inherit
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _timed(task: Task) -> tuple[Any, float]:
    begin = time.monotonic()
    return task.function(**task.arguments), time.monotonic() - begin
