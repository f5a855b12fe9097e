"""Fixtures of the behaviour suite: a broker, and the pipeline's workers on it."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fluxplain.cli.supervisor import Supervisor
from fluxplain.config import Config, load_config
from fluxplain.kafka.topics.create import create_topics
from tests.kit.faulty_broker import FaultyBroker
from tests.kit.kafka_pipeline import KafkaPipeline, StartFaulty
from tests.kit.preloaded import Command, Forked, Preloaded, bare_path
from tests.kit.processes import no_process_left
from tests.kit.settings import REAL_KAFKA, SETTINGS, Configure, topics, write_config

__all__ = ["no_process_left"]  # a fixture: no test leaves a worker running


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    """A broker: the real one if there is one, else a new embedded one."""
    if REAL_KAFKA:
        yield REAL_KAFKA
        return
    with FaultyBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def prefix() -> str:
    """A prefix of the test's own: the real broker is shared by all of them."""
    return f"test-{uuid.uuid4().hex[:8]}."


@pytest.fixture
def tables() -> dict[str, Any]:
    """The tables of a module that differ from the suite's settings."""
    return {}


@pytest.fixture
def configure(tmp_path: Path, prefix: str, tables: dict[str, Any]) -> Configure:
    """Writes the settings of the suite to the same file, with other tables."""
    path, common = tmp_path / "pipeline.toml", {**SETTINGS, "topics": topics(prefix), **tables}
    return lambda **tables: write_config(path, {**common, **tables})


@pytest.fixture
def config_path(configure: Configure) -> Path:
    """The settings of the suite as a file."""
    return configure()


@pytest.fixture
def config(bootstrap_servers: str, config_path: Path) -> Config:
    """The settings of the suite, on a broker that has the topics."""
    config = load_config(config_path).on_broker(bootstrap_servers)
    create_topics(config)
    return config


@pytest.fixture
def start(
    bootstrap_servers: str, config_path: Path, tmp_path: Path
) -> Callable[..., KafkaPipeline]:
    """Makes a pipeline on the broker; with the same state when called again."""
    return lambda **options: KafkaPipeline(config_path, bootstrap_servers, tmp_path, **options)


@pytest.fixture
def start_faulty(preloaded: Preloaded, config_path: Path) -> Iterator[StartFaulty]:
    """Starts a worker with a fault in it, beside those of a pipeline."""
    started: list[Forked] = []

    def start(
        pipeline: KafkaPipeline, fault: str, role: str = "model", **environment: str
    ) -> Forked:
        module = "tests.kit.faulty_worker"
        command = [sys.executable, "-m", module, str(config_path), fault, role]
        with pipeline.log_path.open("ab") as log:
            own = {**os.environ, **pipeline.environment, **environment}
            started.append(preloaded.start(command, own, log))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()


@pytest.fixture
def fluxplain(preloaded: Preloaded) -> Command:
    """Runs a command to its end, in the folder of its settings."""
    return preloaded.run


@pytest.fixture(autouse=True)
def plain_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes as a plain installation does."""
    monkeypatch.setenv("PYTHONPATH", bare_path())


@pytest.fixture(autouse=True)
def forked_workers(preloaded: Preloaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the workers that would be the same if they started anew."""
    anew = Supervisor._spawn

    def spawn(self: Supervisor, command: Sequence[str], own: Mapping[str, str]) -> Any:
        environment = {**self._environment, **own}
        if preloaded.can_fork(command, environment):
            return preloaded.start(command, environment, self._stderr)
        return anew(self, command, own)

    monkeypatch.setattr(Supervisor, "_spawn", spawn)
