"""Older checkpoints of the model: which are kept, and that neither kills nor owners harm them."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import KEPT, Checkpoint, Slot
from fluxplain.kafka.checkpoints.checkpoint_history import History, next_offset, spaced
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.nearest import nearest
from fluxplain.kafka.ownership.lives import Life
from fluxplain.stages import DriftStage
from tests.kit.settings import SETTINGS

SLOT = Slot("model", "features", 0)
IDENTITY = Identity.of({"seed": "one"}, "cluster")
KEEP = 4
STAGE = DriftStage(Config(**SETTINGS))  # small; stores do not look into it
DAY_S = 24 * 3600.0


def store(
    folder: Path, *, keep: int = KEEP, hours: float = 48.0, identity: Identity = IDENTITY
) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(folder, Envelope(identity), History(keep, hours))


def save(
    to: DirectoryCheckpointStore, *offsets: int, epoch: int = 1, slot: Slot = SLOT, **more: Any
) -> None:
    for offset in offsets:
        to.save(slot, Checkpoint(offset, STAGE, epoch=epoch, **more))


def kept(folder: Path) -> list[int]:
    """Return the offsets in the history, ascending."""
    return sorted(next_offset(path) for path in folder.rglob("*.history"))


def resumed(folder: Path) -> list[int]:
    return sorted(next_offset(path) for path in folder.rglob("*.checkpoint"))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=200), st.integers(1, 9))
def test_no_gap_is_longer_than_twice_an_even_one(steps: list[int], keep: int) -> None:
    end, offsets = 0, list[int]()
    for step in steps:
        if end:
            offsets.append(end)
        end += step
        offsets = [offsets[i] for i in spaced(offsets, end, keep)]
        bounds = [0, *offsets, end]
        gap = max(after - before for before, after in pairwise(bounds))
        assert len(offsets) <= keep
        assert gap <= 2 * end / (keep + 1) + 2 * max(steps)


def test_it_keeps_so_many_evenly_and_workers_resume_from_the_newest(tmp_path: Path) -> None:
    save(store(tmp_path), *range(10, 1010, 10))
    assert resumed(tmp_path) == [990, 1000][-KEPT:]
    bounds = [0, *kept(tmp_path), 1000]
    assert len(bounds) == KEEP + 2
    gaps = [after - before for before, after in pairwise(bounds)]
    assert max(gaps) <= 2 * 1000 / (KEEP + 1) + 20
    loaded = store(tmp_path).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 1000


@pytest.mark.parametrize(
    "slot", [Slot("drift", "explanations", 0), replace(SLOT, role="explainer"), SLOT]
)
def test_other_roles_and_a_setting_of_0_keep_none(tmp_path: Path, slot: Slot) -> None:
    save(store(tmp_path, keep=0 if slot == SLOT else KEEP), *range(1, 9), slot=slot)
    assert kept(tmp_path) == []
    assert resumed(tmp_path) == [7, 8]


def test_only_the_first_shard_keeps_some(tmp_path: Path) -> None:
    for shard in ("-0of2", "-1of2"):
        save(store(tmp_path), *range(1, 9), slot=replace(SLOT, shard=shard))
    assert {path.parent.parent.name for path in tmp_path.rglob("*.history")} == {"model-0of2"}


@pytest.mark.parametrize("slot", [Slot("drift", "explanations", 0), SLOT])
def test_one_is_always_old_enough_for_other_versions_to_replay(tmp_path: Path, slot: Slot) -> None:
    near = DirectoryCheckpointStore(tmp_path, Envelope(IDENTITY), History(near=100))
    for end in range(10, 2000, 30):
        save(near, end, slot=slot)
        old = [end - each for each in kept(tmp_path) if each <= end - 100]
        if end >= 200:
            assert len(kept(tmp_path)) <= 2
            assert 100 <= min(old) <= 260


def test_a_smaller_setting_removes_what_is_too_much(tmp_path: Path) -> None:
    save(store(tmp_path), *range(1, 20))
    save(store(tmp_path, keep=1), 20)
    assert len(kept(tmp_path)) == 1
    save(store(tmp_path, keep=0), 21)
    assert kept(tmp_path) == []


def test_those_before_the_log_begins_are_removed_but_for_the_last(tmp_path: Path) -> None:
    save(store(tmp_path), 10, 20, 30, 40, 50, 60)
    assert kept(tmp_path) == [10, 20, 30, 40]
    for path in tmp_path.rglob("*.history"):
        age_s = {10: 9, 20: 4, 30: 3, 40: 1}[next_offset(path)] * DAY_S
        os.utime(path, (time.time() - age_s,) * 2)
    save(store(tmp_path), 70)
    assert kept(tmp_path) == [30, 40, 50], "30 is before all that is newer than two days"


def test_those_of_a_state_that_was_given_up_are_removed(tmp_path: Path) -> None:
    save(store(tmp_path), *range(100, 1000, 100), epoch=3)
    replaced = store(tmp_path, identity=replace(IDENTITY, registered=5))
    save(replaced, 50, 60, 70, 80, epoch=7)
    assert kept(tmp_path) == [50, 60]


def test_an_owner_before_removes_none_of_its_successor(tmp_path: Path) -> None:
    before, now = store(tmp_path), store(tmp_path)
    save(before, 10, 20, 30, 40, epoch=1)
    save(now, 50, 60, 70, 80, epoch=2)
    of_now = {path.name for path in tmp_path.rglob(f"{2:020d}-*")}
    save(before, 45, 500, epoch=1)
    assert of_now <= {path.name for path in tmp_path.rglob("*")}
    save(now, 90, epoch=2)
    assert 500 not in kept(tmp_path)


class Killed(BaseException):
    """A kill between two steps of a write."""


def kills(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield 0, 1, …; a save then dies at the rename or removal of that number."""
    for number in range(8):
        left = iter(range(number))

        def killing(do: Any, left: Iterator[int] = left) -> Any:
            def step(*args: Any, **more: Any) -> Any:
                if next(left, None) is None:
                    raise Killed
                return do(*args, **more)

            return step

        with monkeypatch.context() as patch:
            for name in ("rename", "unlink"):
                patch.setattr(Path, name, killing(getattr(Path, name)))
            yield number


def test_a_kill_at_any_step_leaves_a_sound_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset, deaths = 0, 0
    for _ in range(4):
        for _number in kills(monkeypatch):
            for _save in range(3):
                offset += 10
                try:
                    save(store(tmp_path), offset)
                except Killed:
                    deaths += 1
            opened = [each.open() for each in store(tmp_path).candidates(SLOT)]
            found = [checkpoint.next_offset for checkpoint in opened]
            assert found == sorted(set(found), reverse=True), "each is whole, and there once"
    assert deaths > 20
    offset += 10
    save(store(tmp_path), offset)
    assert len(kept(tmp_path)) == KEEP
    bounds = [0, *kept(tmp_path), offset]
    gaps = [after - before for before, after in pairwise(bounds)]
    assert max(gaps) <= 2 * offset / (KEEP + 1) + 40


def test_the_nearest_usable_one_is_found_and_others_are_refused(tmp_path: Path) -> None:
    save(store(tmp_path), *range(10, 70, 10))
    assert kept(tmp_path) == [10, 20, 30, 40]
    for through, expected in {60: 60, 59: 50, 45: 40, 19: 10, 9: None}.items():
        found, refusals = nearest(store(tmp_path), SLOT, through, "1")
        assert (found and found.next_offset, refusals) == (expected, [])
    path = next(path for path in tmp_path.rglob("*.history") if next_offset(path) == 40)
    path.write_bytes(path.read_bytes()[:-1])
    found, [refusal] = nearest(store(tmp_path), SLOT, 45, "1")
    assert found is not None
    assert found.next_offset == 30
    assert str(path) in refusal
    assert "its digest does not match" in refusal


@pytest.mark.parametrize(
    ("more", "identity", "reason"),
    [
        ({"life": Life(1, 7)}, IDENTITY, "its incarnation is '7'"),
        ({}, replace(IDENTITY, registered=5), "it belongs to settings number 5"),
        ({}, replace(IDENTITY, versions={"python": "2.7"}), "python 2.7 (here "),
    ],
)
def test_one_of_another_model_is_refused(
    tmp_path: Path, more: dict[str, Any], identity: Identity, reason: str
) -> None:
    save(store(tmp_path, identity=identity), 10, **more)
    found, [refusal] = nearest(store(tmp_path), SLOT, 45, "1")
    assert found is None
    assert reason in refusal


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    save(store(tmp_path), *range(9))
    assert store(tmp_path).remove(SLOT)
    assert not [*store(tmp_path).candidates(SLOT)]
    assert kept(tmp_path) == []
