"""Checkpoints as files below a directory; for one machine, or a shared file system."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from fluxplain.kafka.checkpoints.checkpoint import KEPT, Candidate, Checkpoint, Slot, Snapshot
from fluxplain.kafka.checkpoints.checkpoint_history import HISTORY, History, files_of, next_offset
from fluxplain.kafka.checkpoints.envelope import DamagedError, Envelope, newest_usable
from fluxplain.kafka.ownership.writers import ANY, Begin

CHECKPOINT = ".checkpoint"
"""End of the names of files that workers resume from."""


class DirectoryCheckpointStore:
    """Checkpoints as files below a directory.

    A file holds a line of JSON (the header, with a digest) and the pickled stage. It is written to
    a temporary file, synced and renamed, so that a crash leaves the previous one. Without a key,
    write access to the directory allows running code here.

    Some older ones are kept for a replay, as the history chooses; for all but the model, only those
    near the newest one. Workers never resume from these.
    """

    def __init__(self, directory: Path, envelope: Envelope, history: History | None = None) -> None:
        self._directory = directory
        self._envelope = envelope
        self._history = history or History()

    def save(self, slot: Slot, checkpoint: Checkpoint | Snapshot) -> None:
        """Write the checkpoint; retire all but the newest two of this and earlier owners."""
        folder = self._folder(slot)
        make_private_folder(folder)
        own = f"{checkpoint.epoch:020d}"
        final = folder / f"{own}-{checkpoint.next_offset:020d}{CHECKPOINT}"
        aside = folder / f"{final.name}.{os.getpid()}.tmp"
        with aside.open("wb") as file:
            header, state = self._envelope.seal(slot, checkpoint)
            file.write(header + b"\n")
            file.write(state)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(final)
        _sync(folder)
        # a former owner that does not know it yet must not remove newer ones
        files = [path for path in files_of(folder, CHECKPOINT) if path.name[: len(own)] <= own]
        surplus = files[KEPT:]
        keep = self._history.keep if slot.is_replayed else 0
        replace(self._history, keep=keep).update(folder, surplus, final)
        for old in [*surplus, *_abandoned(folder)]:
            old.unlink(missing_ok=True)

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint."""
        candidates = self._candidates(slot, files_of(self._folder(slot), CHECKPOINT))
        return newest_usable(slot, candidates, begin)

    def candidates(self, slot: Slot) -> Iterator[Candidate]:
        """Yield the slot's checkpoints, newest first, also those of the history."""
        return self._candidates(slot, files_of(self._folder(slot), CHECKPOINT, HISTORY))

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot."""
        folder = self._folder(slot)
        files = files_of(folder, CHECKPOINT, HISTORY)
        for path in files:
            path.unlink(missing_ok=True)
        if files:
            _sync(folder)
        return bool(files)

    def _folder(self, slot: Slot) -> Path:
        # equal topic names in another cluster are another log
        cluster = self._envelope.identity.cluster
        return self._directory / cluster / slot.owner / str(slot.tp)

    def _candidates(self, slot: Slot, files: Iterable[Path]) -> Iterator[Candidate]:
        for path in files:
            yield Candidate(str(path), partial(self._open, slot, path), next_offset(path))

    def _open(self, slot: Slot, path: Path) -> Checkpoint:
        try:
            header, _, state = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            raise DamagedError("another worker has removed it meanwhile") from None
        return self._envelope.open(self._envelope.read_header(slot, header), state)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    for each in (*reversed(folder.parents), folder):
        each.mkdir(mode=0o700, exist_ok=True)


def _abandoned(folder: Path) -> list[Path]:
    # a worker killed while writing leaves its temporary file
    return [path for path in folder.glob("*.tmp") if not _alive(path)]


def _alive(path: Path) -> bool:
    try:
        os.kill(int(path.name.split(".")[-2]), 0)
    except PermissionError:
        return True  # another user's process
    except (ProcessLookupError, ValueError):
        return False
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
