"""A folder with settings, and what runs there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fluxplain.kafka.embedded import EmbeddedBroker
from tests.kit.in_process import run
from tests.kit.processes import no_process_left
from tests.kit.settings import NOT_INSTALLED, SETTINGS, write_config

__all__ = ["no_process_left"]


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


@pytest.fixture
def with_topics(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, whose embedded broker has the pipeline's topics."""
    monkeypatch.chdir(folder)
    with EmbeddedBroker() as broker:
        broker.publish_address()
        assert run(folder, "topics", "create").returncode == 0
        yield folder
