"""The state at one moment, taken while the process goes on."""

import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import psutil
import pytest

from fluxplain.kafka.checkpoints import checkpoint
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Snapshot, SnapshotError
from fluxplain.stages import Stage


class Counting:
    """A stage with a state that changes; with much that does not."""

    def __init__(self) -> None:
        self.count = 0
        self.bulk = [str(i) for i in range(50_000)]

    def decode(self, message: Any) -> Any:
        return message

    def step(self, record: Any) -> list[Any]:
        self.count += 1
        return []


class Unpicklable(Counting):
    def __getstate__(self) -> Any:
        raise TypeError("there is no way to write me down")


class Slow(Counting):
    def __getstate__(self) -> Any:
        time.sleep(60)


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail a test that leaves a copy of the process behind, even a dead one."""
    before = {child.pid for child in psutil.Process().children()}
    yield
    assert {child.pid for child in psutil.Process().children()} <= before


def taken(stage: Stage, *, aside: bool) -> Snapshot:
    return Snapshot(Checkpoint(7, stage), aside=aside)


@pytest.mark.parametrize("aside", [False, True])
def test_a_snapshot_is_of_the_moment_when_it_was_taken(aside: bool) -> None:
    stage = Counting()
    stage.count = 5
    snapshot = taken(stage, aside=aside)
    expected = Checkpoint(7, stage).pickled()
    stage.step(None)
    stage.bulk.clear()
    assert snapshot.next_offset == 7
    assert snapshot.pickled() == snapshot.pickled() == expected
    assert len(expected) > 200_000, "more than a pipe holds"


def test_what_cannot_be_pickled_is_an_error() -> None:
    with pytest.raises(TypeError, match="no way"):
        taken(Unpicklable(), aside=False)
    with pytest.raises(SnapshotError, match="ended with status 1"):
        taken(Unpicklable(), aside=True).pickled()


def test_a_copy_that_is_killed_or_takes_too_long_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = taken(Slow(), aside=True)
    psutil.Process(killed._child).send_signal(signal.SIGKILL)
    with pytest.raises(SnapshotError, match="ended with status -9"):
        killed.pickled()
    monkeypatch.setattr(checkpoint, "TIMEOUT_S", 0.2)
    with pytest.raises(SnapshotError, match="took more than"):
        taken(Slow(), aside=True).pickled()


def test_a_snapshot_that_nobody_wants_leaves_nothing() -> None:
    unwanted = taken(Slow(), aside=True)
    unwanted.discard()
    unwanted.discard()


TAKES_AND_DIES = """
import os
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Snapshot
from tests.kafka.checkpoints.test_snapshot import Counting

print(Snapshot(Checkpoint(7, Counting()), aside=True)._child, flush=True)
os._exit(0)
"""


def test_a_copy_does_not_outlive_a_process_that_is_killed() -> None:
    command = [sys.executable, "-c", TAKES_AND_DIES]
    taken = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(taken.stdout)).wait(timeout=60)


def test_where_a_process_cannot_be_copied_it_pickles_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint, "CAN_FORK", False)
    stage = Counting()
    assert taken(stage, aside=True).pickled() == Checkpoint(7, stage).pickled()


@pytest.mark.slow
def test_other_threads_do_no_harm() -> None:
    """A copy has only one thread, whatever the others were doing when it was made."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            pickle.loads(pickle.dumps([str(i) for i in range(1000)]))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        stage = Counting()
        for count in range(10):
            stage.count = count
            copy = Checkpoint.unpickled(7, 1, taken(stage, aside=True).pickled()).stage
            assert cast(Counting, copy).count == count
    finally:
        stop.set()
        for thread in threads:
            thread.join()
