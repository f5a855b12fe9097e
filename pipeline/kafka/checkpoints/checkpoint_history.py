"""Older checkpoints, from which a replay can start."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HISTORY = ".history"
"""File name suffix of checkpoints that only replays start from."""

NEAR = 1_000
"""Least number of messages after an older checkpoint that is kept of each role, so that other
versions can replay as many (`fluxplain checkpoints adopt`)."""

NAME = "-".join(["[0-9]" * 20] * 2)
"""Pattern of the names: epoch and next offset."""


@dataclass(frozen=True, slots=True)
class History:
    """Keeps ``keep`` of the files that a store would remove, at about even distances.

    So a replay takes at most 2 n ÷ (``keep`` + 1) of n messages. If the beginning of the log was
    deleted, few observations precede the first usable file; with ages that double, up to half of
    the log would.

    With ``near``, one that is at least that many offsets old, and at most about twice as many, is
    kept as well, and one that will be.

    Files older than ``hours`` are removed, except the newest of them: the messages after it may
    still be in the log.
    """

    keep: int = 0
    hours: float = float("inf")
    near: int = 0

    def update(self, folder: Path, retired: Iterable[Path], newest: Path) -> None:
        """Add files that the store no longer needs; remove all that are not kept.

        Each step is one rename or removal, and each update begins with the existing files, so a
        kill in between does no harm. Files of an owner after ``newest`` stay.
        """
        for path in retired:
            with suppress(FileNotFoundError):  # a previous owner may have removed it
                path.rename(path.with_suffix(HISTORY))
        files = [path for path in files_of(folder, HISTORY) if _epoch(path) <= _epoch(newest)]
        kept = self._kept(files, newest)
        for path in files:
            if path not in kept:
                path.unlink(missing_ok=True)

    def _kept(self, files: Sequence[Path], newest: Path) -> set[Path]:
        begin = time.time() - self.hours * 3600.0
        in_line, after = [newest], next_offset(newest)
        for path in files:
            # the others belong to a state that was dropped and restarted at a lower offset
            if (offset := next_offset(path)) < after and _written_at(in_line[-1]) > begin:
                in_line.append(path)
                after = offset
        ascending = in_line[:0:-1]
        offsets, end = [next_offset(path) for path in ascending], next_offset(newest)
        chosen = spaced(offsets, end, self.keep) + nearest_ago(offsets, end, self.near)
        return {ascending[i] for i in chosen}


def files_of(folder: Path, *endings: str) -> list[Path]:
    """Return the files with these endings, newest owner and newest offset first."""
    files = [path for ending in endings for path in folder.glob(f"{NAME}{ending}")]
    return sorted(files, reverse=True)


def next_offset(path: Path) -> int:
    """Return the offset in a file's name."""
    return int(path.stem.rpartition("-")[2])


def spaced(offsets: Sequence[int], end: int, keep: int) -> list[int]:
    """Return the indices of ascending offsets to keep, so that no gap from 0 to ``end`` is large.

    Examples
    --------
    >>> spaced([10, 20, 25, 30, 40], 50, keep=4)
    [0, 1, 3, 4]
    """
    chosen = list(range(len(offsets)))
    while len(chosen) > keep:
        bounds = [0, *(offsets[i] for i in chosen), end]
        gaps = [after - before for before, after in zip(bounds, bounds[2:], strict=False)]
        del chosen[gaps.index(min(gaps))]
    return chosen


def nearest_ago(offsets: Sequence[int], end: int, near: int) -> list[int]:
    """Return the indices of the last of ascending offsets up to ``end - near``, and of the next.

    Examples
    --------
    >>> nearest_ago([10, 20, 30, 40, 50], 60, near=25)
    [2, 3]
    """
    if not near:
        return []
    old = sum(offset <= end - near for offset in offsets)
    return [*range(len(offsets))][max(old - 1, 0) : old + 1]


def _epoch(path: Path) -> str:
    return path.name.partition("-")[0]


def _written_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0
