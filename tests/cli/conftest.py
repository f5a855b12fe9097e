"""A folder with settings, and what runs there."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands import FORKS, run, start
from tests.kit.preloaded import Preloaded
from tests.kit.processes import no_process_left
from tests.kit.settings import NOT_INSTALLED, SETTINGS, write_config
from tests.kit.waiting import wait_until

__all__ = ["no_process_left"]

ADDRESS = ".fluxplain/embedded-broker"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = {
        **SETTINGS,
        "kafka": {"bootstrap_servers": "embedded"},
        "alerts": {"url": "http://127.0.0.1:1/"},
    }
    write_config(tmp_path / "fluxplain.toml", settings)
    return tmp_path


@pytest.fixture
def without_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with settings, but not their model."""
    write_config(tmp_path / "fluxplain.toml", {**SETTINGS, "model": NOT_INSTALLED})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def interrupted_at_the_end(process: "subprocess.Popen[bytes]", folder: Path) -> Iterator[Path]:
    try:
        wait_until((folder / ADDRESS).exists)
        yield folder
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
        assert not (folder / ADDRESS).exists()


@pytest.fixture
def running(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain up --embedded`` runs."""
    with interrupted_at_the_end(start(folder, "up", "--embedded"), folder):
        yield folder


@pytest.fixture
def with_topics(folder: Path) -> Iterator[Path]:
    """A folder in which ``fluxplain broker`` runs, with the pipeline's topics."""
    with interrupted_at_the_end(start(folder, "broker"), folder):
        assert run(folder, "topics", "create").returncode == 0
        yield folder


@pytest.fixture(scope="session", autouse=True)
def forked_commands(preloaded: Preloaded) -> Iterator[None]:
    """Fork commands that end; `up`, `broker` and others that stay start a process of their own."""
    FORKS.append(preloaded)
    yield
    FORKS.clear()
