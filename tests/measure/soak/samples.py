"""What the workers need, as the stream goes on, and whether that is flat."""

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_S = 2.0

MARKS = (0.10, 0.25, 0.50, 0.75, 1.00)
"""Shares of the stream."""

AROUND = 9
"""Samples whose median stands for a mark."""

MB = 1_000_000

MEMORY_SHARE, MEMORY_BYTES = 0.10, 10 * MB
"""How much more resident memory a worker may have at the end than at the first mark: the larger
of the two. An allocator's fragments settle within that; a leak of 50 bytes a record does not."""

MORE_FILES = 2
"""How many more files may be open: connections come and go."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One worker at one moment: its memory, its own part of that, files and threads.

    `checkpoints` is the size of the newest ones of its role; all sizes are in bytes.
    """

    rss: int
    uss: int
    files: int
    threads: int
    checkpoints: int

    @classmethod
    def median(cls, samples: Sequence["Sample"]) -> "Sample":
        return cls(
            *(
                int(statistics.median(getattr(sample, name) for sample in samples))
                for name in cls.__slots__
            )
        )


class Samples:
    """Takes a sample of every worker now and then.

    `taken` holds worker → (records through all roles, sample), in order.
    """

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints
        self._taken_at = 0.0
        self.taken: dict[str, list[tuple[int, Sample]]] = {}

    def take_if_due(self, workers: Mapping[str, int], through: int) -> None:
        """Take a sample of each worker, by its process id, every two seconds."""
        if time.monotonic() - self._taken_at < SAMPLE_S:
            return
        self._taken_at = time.monotonic()
        for name, pid in workers.items():
            with suppress(psutil.NoSuchProcess):  # it has just died, which is reported elsewhere
                sample = self._sample(psutil.Process(pid), role=name.rpartition("-")[0])
                self.taken.setdefault(name, []).append((through, sample))

    def at_marks(self, records: int) -> dict[str, list[Sample]]:
        """Return worker → one sample for each mark of a stream of so many records."""
        return {
            name: [_around(taken, mark * records) for mark in MARKS]
            for name, taken in self.taken.items()
        }

    def _sample(self, process: psutil.Process, role: str) -> Sample:
        with process.oneshot():
            memory = process.memory_full_info()
            return Sample(
                rss=memory.rss,
                uss=memory.uss,
                files=process.num_fds(),
                threads=process.num_threads(),
                checkpoints=_newest_size(self._checkpoints, role),
            )


def table(marks: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Return the lines of a table of each worker at each mark."""
    lines = [
        f"{'worker':<12} {'at':>5} {'RSS MB':>8} {'USS MB':>8} {'files':>6} {'threads':>8} "
        f"{'checkpoints kB':>15}"
    ]
    for name, samples in marks.items():
        for mark, s in zip(MARKS, samples, strict=True):
            lines.append(
                f"{name:<12} {mark:>5.0%} {s.rss / MB:>8.1f} {s.uss / MB:>8.1f} {s.files:>6} "
                f"{s.threads:>8} {s.checkpoints / 1000:>15.1f}"
            )
    return lines


def growth(marks: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Return what has grown between the first mark and the last; nothing if all is flat."""
    problems = []
    for name, (first, *_, last) in marks.items():
        allowed = max(MEMORY_SHARE * first.rss, MEMORY_BYTES)
        if last.rss - first.rss > allowed:
            problems.append(
                f"{name} grew by {(last.rss - first.rss) / MB:.1f} MB, "
                f"but may by {allowed / MB:.1f} MB"
            )
        if last.files - first.files > MORE_FILES:
            problems.append(f"{name} has {last.files - first.files} more files open")
    return problems


def _around(taken: Sequence[tuple[int, Sample]], records: float) -> Sample:
    nearest = sorted(taken, key=lambda each: abs(each[0] - records))[:AROUND]
    return Sample.median([sample for _, sample in nearest])


def _newest_size(checkpoints: Path, role: str) -> int:
    newest = {path.parent: path for path in sorted(checkpoints.glob(f"*/{role}/*/*.checkpoint"))}
    size = 0
    for path in newest.values():
        with suppress(FileNotFoundError):  # a newer one has just replaced it
            size += path.stat().st_size
    return size
