"""Several workers a role: started, added, removed, killed, paused, and started again."""

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from fluxplain.cli import supervisor
from fluxplain.cli.interruption import until_interrupted
from fluxplain.cli.supervisor import ROLES, Supervisor, WorkerRefusedError
from fluxplain.config.replica import Role
from tests.kit.waiting import wait_until

WORKER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open(os.path.join(sys.argv[1], f"{os.environ['NAME']} {os.getpid()}"), "w")
if os.environ["NAME"] == os.environ.get("REFUSING"):
    sys.exit(78)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _small_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(_role: Role, _config_path: Path) -> list[str]:
        return [sys.executable, "-c", WORKER, str(tmp_path)]

    monkeypatch.setattr(supervisor, "worker_command", command)
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.05)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(Path("any.toml"), environment_of=lambda name: {"NAME": name}) as workers:
        yield workers


def test_starts_so_many_workers_of_each_role_and_stops_them(
    workers: Supervisor, tmp_path: Path
) -> None:
    workers.start(2)
    names = {f"{role}-{i}" for role in ("model", "explainer", "drift") for i in (1, 2)}
    assert workers.running().keys() == names
    assert workers.running("drift").keys() == {"drift-1", "drift-2"}
    wait_until(lambda: _started(tmp_path) == {f"{n} {pid}" for n, pid in workers.running().items()})
    workers.stop()
    assert workers.exit_statuses == dict.fromkeys(names, 0)
    assert workers.running() == {}


def test_a_worker_that_was_removed_is_not_started_again_and_its_name_is_free(
    workers: Supervisor, tmp_path: Path
) -> None:
    workers.start(2)
    wait_until(lambda: len(_started(tmp_path)) == 6)
    assert workers.remove("model-1") == 0
    workers.check()
    assert workers.running("model").keys() == {"model-2"}
    assert workers.add("model") == "model-1"
    assert workers.add("model") == "model-3"
    assert workers.deaths == []


def test_a_worker_or_service_that_was_killed_is_started_again_under_its_name(
    workers: Supervisor, tmp_path: Path
) -> None:
    workers.start()
    workers.add_service("alerts", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert "alerts" not in {name for role in ROLES for name in workers.running(role)}
    wait_until(lambda: len(_started(tmp_path)) == 3)
    before = workers.running()
    killed = ("drift-1", "alerts")
    for name in killed:
        workers.kill(name)
    wait_until(lambda: len(workers.running()) == 2)

    def restarted() -> bool:
        workers.check()
        return len(workers.running()) == 4

    wait_until(restarted)
    assert workers.deaths == [(name, -signal.SIGKILL) for name in killed]
    after = workers.running()
    assert {name for name, pid in after.items() if before[name] != pid} == {*killed}
    wait_until(lambda: sum(line.startswith("drift-1") for line in _started(tmp_path)) == 2)


def test_a_paused_worker_is_no_death_and_does_not_keep_the_others_from_stopping(
    workers: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_S", 5.0)
    workers.start()
    wait_until(lambda: len(_started(tmp_path)) == 3)
    process = psutil.Process(workers.running()["model-1"])
    for each, stops in ((signal.SIGSTOP, True), (signal.SIGCONT, False), (signal.SIGSTOP, True)):
        workers.kill("model-1", each)
        wait_until(lambda: (process.status() == psutil.STATUS_STOPPED) == stops)  # noqa: B023
        workers.check()
    assert workers.deaths == []
    workers.stop()
    assert workers.exit_statuses == {"model-1": -9, "explainer-1": 0, "drift-1": 0}


def test_a_worker_that_says_it_would_fail_again_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSING", "model-2")
    with Supervisor(Path("any.toml"), environment_of=lambda name: {"NAME": name}) as refusing:
        refusing.start(2)
        wait_until(lambda: "model-2" not in refusing.running())
        with pytest.raises(WorkerRefusedError, match="model-2 cannot run"):
            refusing.check()


def test_a_mistake_at_a_restart_ends_nothing(workers: Supervisor, tmp_path: Path) -> None:
    once = f"import os, sys; p = {str(tmp_path / 'ran')!r}; again = os.path.exists(p); "
    once += "open(p, 'w'); sys.exit(2 if again else 70)"
    workers.add_service("dashboard", [sys.executable, "-c", once])

    def mistaken() -> bool:
        workers.check()
        return ("dashboard", 2) in workers.deaths

    wait_until(mistaken)
    workers.check()
    assert workers.deaths == [("dashboard", 70), ("dashboard", 2)]
    assert not workers._children["dashboard"].given_up


def test_a_machine_that_can_start_no_process_is_waited_for(
    workers: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.start()
    workers.kill("drift-1")
    wait_until(lambda: "drift-1" not in workers.running())
    reports: list[str] = []
    monkeypatch.setattr(workers, "_report", reports.append)

    def full(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def tried() -> bool:
        workers.check()
        return len(reports) == 3

    with monkeypatch.context() as patch:
        patch.setattr(workers, "_spawn", full)
        wait_until(tried)
    assert all("cannot be started" in line for line in reports[1:])

    def restarted() -> bool:
        workers.check()
        return len(workers.running()) == 3

    wait_until(restarted)


def test_a_signal_while_a_worker_starts_leaves_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with until_interrupted() as interruption:  # noqa: SIM117  the order is what is tested
        with Supervisor(Path("any.toml"), environment_of=lambda name: {"NAME": name}) as workers:
            spawn = workers._spawn

            def interrupted(command: Sequence[str], own: Mapping[str, str]) -> object:
                process = spawn(command, own)
                signal.raise_signal(signal.SIGTERM)
                wait_until(lambda: _started(tmp_path))
                return process

            monkeypatch.setattr(workers, "_spawn", interrupted)
            workers.start()
    assert interruption.by == signal.SIGTERM
    assert workers.exit_statuses == {"model-1": 0}


def test_a_signal_does_not_interrupt_the_stop_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> None:
        with Supervisor(Path("any.toml"), environment_of=lambda name: {"NAME": name}) as workers:
            workers.start()
            wait_until(lambda: len(_started(tmp_path)) == 3)
            kill = workers.kill

            def interrupted(name: str, number: signal.Signals) -> None:
                signal.raise_signal(signal.SIGINT)
                kill(name, number)

            monkeypatch.setattr(workers, "kill", interrupted)
            raise FileNotFoundError

    with until_interrupted() as interruption, pytest.raises(FileNotFoundError):
        failing()
    assert interruption.by is None


def test_what_may_come_at_any_moment_is_not_waited_for_as_long_as_a_failure() -> None:
    pauses = {}
    for status in (70, 75):
        failing = [sys.executable, "-c", f"import sys; sys.exit({status})"]
        child = supervisor._Child("model", failing, {}, process=None)  # type: ignore[arg-type]
        for _ in range(10):
            child.died(time.monotonic(), status)
        pauses[status] = child.pause_s
    assert pauses == {70: supervisor.LONGEST_PAUSE_S, 75: supervisor.LONGEST_WAIT_S}


def test_workers_run_without_a_service_that_refuses() -> None:
    reports: list[str] = []
    with Supervisor(
        Path("any.toml"), environment_of=lambda name: {"NAME": name}, report=reports.append
    ) as workers:
        workers.start()
        workers.add_service("alerts", [sys.executable, "-c", "import sys; sys.exit(2)"])
        wait_until(lambda: "alerts" not in workers.running())
        workers.check()
        workers.check()
        assert len(workers.running()) == 3
    [line] = reports
    assert line.startswith("alerts cannot run (exit status 2)")


def _started(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
