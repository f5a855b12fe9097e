"""What every checkpoint store must do, and what the directory store does beyond."""

import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.kafka.checkpoints import (
    KEPT,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    DirectoryCheckpointStore,
    Identity,
    Slot,
)
from pipeline.stages import DriftStage
from tests.behaviour.conftest import SETTINGS

SLOT = Slot("drift", "explanations", 0)
IDENTITY = Identity.of("settings", "cluster")

MakeStore = Callable[[Identity], CheckpointStore]


@pytest.fixture
def stage() -> DriftStage:
    return DriftStage(Config(**SETTINGS))


@pytest.fixture(params=["directory"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    stores: dict[str, MakeStore] = {
        "directory": lambda identity: DirectoryCheckpointStore(tmp_path, identity)
    }
    return stores[request.param]


def test_nothing_is_there_at_first(make_store: MakeStore) -> None:
    assert make_store(IDENTITY).load(SLOT) is None


def test_the_newest_one_comes_back(make_store: MakeStore, stage: DriftStage) -> None:
    store = make_store(IDENTITY)
    for offset in (9, 10, 100):
        store.save(SLOT, Checkpoint(offset, stage))
    loaded = make_store(IDENTITY).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 100
    assert isinstance(loaded.stage, DriftStage)


def test_slots_are_kept_apart(make_store: MakeStore, stage: DriftStage) -> None:
    store = make_store(IDENTITY)
    store.save(SLOT, Checkpoint(7, stage))
    for other in (
        replace(SLOT, role="model"),
        replace(SLOT, topic="features"),
        replace(SLOT, partition=1),
    ):
        assert store.load(other) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(IDENTITY, configuration="other settings"),
        replace(IDENTITY, versions={"python": "2.7"}),
    ],
)
def test_one_of_something_else_is_refused(
    make_store: MakeStore, stage: DriftStage, other: Identity
) -> None:
    make_store(IDENTITY).save(SLOT, Checkpoint(7, stage))
    with pytest.raises(CheckpointError, match="cannot be used"):
        make_store(other).load(SLOT)


def test_another_cluster_starts_anew(make_store: MakeStore, stage: DriftStage) -> None:
    make_store(IDENTITY).save(SLOT, Checkpoint(7, stage))
    assert make_store(replace(IDENTITY, cluster="other")).load(SLOT) is None


def test_only_the_newest_are_kept(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, IDENTITY)
    for offset in range(10):
        store.save(SLOT, Checkpoint(offset, stage))
    assert len(list(tmp_path.rglob("*.*"))) == KEPT


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_truncated_file_is_passed_over(tmp_path: Path, stage: DriftStage, cut: int) -> None:
    store = DirectoryCheckpointStore(tmp_path, IDENTITY)
    store.save(SLOT, Checkpoint(1, stage))
    store.save(SLOT, Checkpoint(2, stage))
    newest = max(tmp_path.rglob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[:cut])
    loaded = store.load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 1


def test_a_file_of_another_slot_is_passed_over(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, IDENTITY)
    store.save(SLOT, Checkpoint(1, stage))
    other = replace(SLOT, partition=1)
    store.save(other, Checkpoint(2, stage))
    first, second = sorted(tmp_path.rglob("*.checkpoint"))
    second.write_bytes(first.read_bytes())
    assert store.load(other) is None


def test_what_a_killed_writer_left_is_removed(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, IDENTITY)
    store.save(SLOT, Checkpoint(1, stage))
    folder = next(tmp_path.rglob("*.checkpoint")).parent
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder / f"00000000000000000002.checkpoint.{dead.pid}.tmp").write_bytes(b"half")
    store.save(SLOT, Checkpoint(3, stage))
    assert not list(folder.glob("*.tmp"))


def test_nobody_else_may_write_there(tmp_path: Path, stage: DriftStage) -> None:
    before = os.umask(0)
    try:
        DirectoryCheckpointStore(tmp_path / "new", IDENTITY).save(SLOT, Checkpoint(1, stage))
    finally:
        os.umask(before)
    for folder in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        if folder.is_dir():
            assert not stat.S_IMODE(folder.stat().st_mode) & 0o077, folder
