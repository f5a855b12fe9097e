"""Checkpoints: the state of one stage for one partition, with the offset it goes on from."""

import hashlib
import json
import logging
import os
import pickle
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from pipeline.stages import Stage

log = logging.getLogger("fluxplain.checkpoints")

MAGIC = "fluxplain-checkpoint-1"

KEPT = 2
"""Checkpoints kept for a partition: the newest, and one before in case it is damaged."""


class CheckpointError(RuntimeError):
    """A checkpoint that must not be used. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Whose state it is: one role and one partition of its input."""

    role: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.role} {self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State after all messages below ``next_offset``."""

    next_offset: int
    stage: Stage


class CheckpointStore(Protocol):
    """Keeps the newest checkpoints of every slot."""

    def save(self, slot: Slot, checkpoint: Checkpoint) -> None:
        """Keep the checkpoint; when this returns, it survives a crash of the machine."""
        ...

    def load(self, slot: Slot) -> Checkpoint | None:
        """Return the newest whole checkpoint; None if there is none.

        Raises
        ------
        CheckpointError
            If it belongs to another configuration, cluster or version.
        """
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """What a checkpoint belongs to: the settings, the cluster and the versions."""

    configuration: str
    cluster: str
    versions: dict[str, str]

    @classmethod
    def of(cls, configuration: str, cluster: str) -> "Identity":
        """Return the identity of what runs here."""
        packages = ("fluxplain", "river", "numpy")
        versions = {name: version(name) for name in packages}
        return cls(configuration, cluster, {**versions, "python": platform.python_version()})

    def check(self, slot: Slot, header: dict[str, Any], where: str) -> None:
        """Raise ``CheckpointError`` if the header is of something else."""
        reasons = {
            "configuration": "the settings of model, features, label, explanations or drift "
            "differ from those it was written with",
            "cluster": "it was written for another Kafka cluster",
            "versions": f"it was written by {header.get('versions')}, this is {self.versions}",
        }
        for field, reason in reasons.items():
            if header.get(field) != getattr(self, field):
                raise CheckpointError(
                    f"the checkpoint of {slot} cannot be used: {reason}. Use what it was written "
                    f"with, or another topics.prefix, or remove {where} to rebuild the state from "
                    "the log"
                )


class DirectoryCheckpointStore:
    """Checkpoints as files below a directory of this machine; for one machine.

    A file holds one line of JSON (what it is, and the digest of the rest) and the pickled stage.
    It is written aside, flushed to the disk and then renamed, so that a crash leaves the one
    before. Only files of this directory are unpickled: whoever can write there can run code here.

    Parameters
    ----------
    directory
        Created if it is missing, for this user alone.
    identity
        What the checkpoints belong to.
    """

    def __init__(self, directory: Path, identity: Identity) -> None:
        self._directory = directory
        self._identity = identity

    def save(self, slot: Slot, checkpoint: Checkpoint) -> None:
        """Keep the checkpoint and drop all but the newest two."""
        folder = self._folder(slot)
        make_private_folder(folder)
        final = folder / f"{checkpoint.next_offset:020d}.checkpoint"
        aside = folder / f"{final.name}.{os.getpid()}.tmp"
        with aside.open("wb") as file:
            file.write(self._encode(slot, checkpoint))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(final)
        _sync(folder)
        for old in [*self._files(folder)[KEPT:], *_abandoned(folder)]:
            old.unlink(missing_ok=True)

    def load(self, slot: Slot) -> Checkpoint | None:
        """Return the newest whole checkpoint, passing over damaged ones with a warning."""
        for path in self._files(self._folder(slot)):
            try:
                return self._decode(slot, path)
            except _DamagedError as error:
                log.warning("checkpoint %s is damaged (%s): trying the one before", path, error)
        return None

    def _folder(self, slot: Slot) -> Path:
        # another cluster's log is another log, even of a topic with the same name
        return (
            self._directory / self._identity.cluster / slot.role / f"{slot.topic}-{slot.partition}"
        )

    def _files(self, folder: Path) -> list[Path]:
        return sorted(folder.glob("*.checkpoint"), reverse=True)

    def _encode(self, slot: Slot, checkpoint: Checkpoint) -> bytes:
        state = pickle.dumps(checkpoint.stage, protocol=pickle.HIGHEST_PROTOCOL)
        header = {
            "magic": MAGIC,
            "slot": str(slot),
            "next_offset": checkpoint.next_offset,
            "bytes": len(state),
            "sha256": hashlib.sha256(state).hexdigest(),
            "configuration": self._identity.configuration,
            "cluster": self._identity.cluster,
            "versions": self._identity.versions,
        }
        return json.dumps(header).encode() + b"\n" + state

    def _decode(self, slot: Slot, path: Path) -> Checkpoint:
        line, _, state = path.read_bytes().partition(b"\n")
        try:
            header = json.loads(line)
        except ValueError:
            raise _DamagedError("its header is no JSON") from None
        if not isinstance(header, dict) or header.get("magic") != MAGIC:
            raise _DamagedError(f"it is no {MAGIC}")
        if header.get("slot") != str(slot):
            raise _DamagedError(f"it is of {header.get('slot')}")
        if hashlib.sha256(state).hexdigest() != header.get("sha256"):
            raise _DamagedError("its digest does not fit")
        self._identity.check(slot, header, str(path.parent))
        return Checkpoint(header["next_offset"], pickle.loads(state))  # noqa: S301  own directory


def make_private_folder(folder: Path) -> None:
    """Create a folder, and what is missing above it, for this user alone."""
    for each in (*reversed(folder.parents), folder):
        each.mkdir(mode=0o700, exist_ok=True)


class _DamagedError(Exception):
    """A file that is no whole checkpoint."""


def _abandoned(folder: Path) -> list[Path]:
    # a worker that was killed while writing leaves its file aside
    return [path for path in folder.glob("*.tmp") if not _alive(path)]


def _alive(path: Path) -> bool:
    try:
        os.kill(int(path.name.split(".")[-2]), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


StageFactory = Callable[[str, int], Stage]
"""Makes a new stage for (topic, partition)."""
