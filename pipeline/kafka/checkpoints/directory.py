"""Checkpoints as files below a directory; for one machine, or a shared file system."""

import os
from pathlib import Path

from fluxplain.kafka.checkpoints.checkpoint import KEPT, Checkpoint, Slot, Snapshot
from fluxplain.kafka.checkpoints.envelope import DamagedError, Envelope, Opener, newest_usable
from fluxplain.kafka.ownership.writers import ANY, Begin


class DirectoryCheckpointStore:
    """Checkpoints as files below a directory.

    A file holds a line of JSON (the header, with a digest) and the pickled stage. It is written to
    a temporary file, synced and renamed, so that a crash leaves the previous one. Without a key,
    write access to the directory allows running code here.
    """

    def __init__(self, directory: Path, envelope: Envelope) -> None:
        self._directory = directory
        self._envelope = envelope

    def save(self, slot: Slot, checkpoint: Checkpoint | Snapshot) -> None:
        """Write the checkpoint; remove all but the newest two of this and earlier owners."""
        folder = self._folder(slot)
        make_private_folder(folder)
        own = f"{checkpoint.epoch:020d}"
        final = folder / f"{own}-{checkpoint.next_offset:020d}.checkpoint"
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
        files = [path for path in self._files(folder) if path.name[: len(own)] <= own]
        for old in [*files[KEPT:], *_abandoned(folder)]:
            old.unlink(missing_ok=True)

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint."""
        folder = self._folder(slot)
        candidates = [(str(path), self._opener(slot, path)) for path in self._files(folder)]
        return newest_usable(slot, candidates, begin)

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot."""
        folder = self._folder(slot)
        files = self._files(folder)
        for path in files:
            path.unlink(missing_ok=True)
        if files:
            _sync(folder)
        return bool(files)

    def _folder(self, slot: Slot) -> Path:
        # equal topic names in another cluster are another log
        cluster = self._envelope.identity.cluster
        return self._directory / cluster / slot.owner / str(slot.tp)

    def _files(self, folder: Path) -> list[Path]:
        """Return the files, newest owner and newest offset first."""
        return sorted(folder.glob("*.checkpoint"), reverse=True)

    def _opener(self, slot: Slot, path: Path) -> Opener:
        def open_it() -> Checkpoint:
            try:
                header, _, state = path.read_bytes().partition(b"\n")
            except FileNotFoundError:
                raise DamagedError("another worker has removed it meanwhile") from None
            return self._envelope.open(self._envelope.read_header(slot, header), state)

        return open_it


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
