"""Fixtures of the behaviour suite: a broker, and the pipeline's workers on it."""

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline.cli.supervisor import Supervisor
from pipeline.kafka.embedded import EmbeddedBroker
from tests.behaviour.kafka_pipeline import KafkaPipeline
from tests.behaviour.preloaded import Preloaded, bare_path

collect_ignore = ["bare"]

FEATURES = {
    **dict.fromkeys(("salary", "commission", "age", "hvalue", "hyears", "loan"), "numeric"),
    **dict.fromkeys(("elevel", "car", "zipcode"), "categorical"),
}

SETTINGS: dict[str, Any] = {
    "seed": 7,
    "features": FEATURES,
    "label": {"type": "integer"},
    "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 2}},
    "explain": {
        "loss": "brier",
        "alpha": 0.01,
        "emit_every": 3,
        "ipfi": {"reservoir_size": 50},
        "isage": {"reservoir_size": 50, "inner_samples": 2},
        "ipdp": {"storage_size": 50, "grid_size": 4},
    },
    # streams so short must show changes, of iPDP too
    "drift": {"delta": 0.002, "params": {"min_window_length": 5}},
    # pipelines run side by side, and there is one port
    "dashboard": {"enabled": False},
}
"""A small pipeline with all methods, quick to warm up."""

NOT_INSTALLED = {"factory": "not_installed:Model"}
"""A model of which only the workers know: who reads topics must get along without it."""


REAL_KAFKA = os.environ.get("TEST_KAFKA")
"""Addresses of a real Kafka, which `make test-kafka` starts; None for the embedded broker."""


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    """A broker: the real one if there is one, else a new embedded one."""
    if REAL_KAFKA:
        yield REAL_KAFKA
        return
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def prefix() -> str:
    """A prefix of the test's own: the real broker is shared by all of them."""
    return f"test-{uuid.uuid4().hex[:8]}."


@pytest.fixture
def config_path(tmp_path: Path, prefix: str) -> Path:
    """The settings of the suite as a file."""
    return write_config(tmp_path / "pipeline.toml", {**SETTINGS, "topics": topics(prefix)})


def topic_store(folder: Path) -> dict[str, Any]:
    """Return the settings of checkpoints in a topic, with a key of their own."""
    key_file = folder / "checkpoint-key"
    key_file.write_text(uuid.uuid4().hex)
    return {"store": "topic", "key_file": str(key_file)}


def topics(prefix: str) -> dict[str, Any]:
    """Return the same topics on either broker."""
    return {"prefix": prefix, "features_partitions": 4, "partitions": 4}


@pytest.fixture
def start(
    bootstrap_servers: str, config_path: Path, tmp_path: Path
) -> Callable[..., KafkaPipeline]:
    """Makes a pipeline on the broker; with the same state when called again."""
    return lambda **options: KafkaPipeline(config_path, bootstrap_servers, tmp_path, **options)


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


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail a test that leaves a worker running."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    for child in left:
        child.kill()
    assert not left, f"left running: {left}"


def write_config(path: Path, settings: dict[str, Any]) -> Path:
    """Write settings as TOML."""
    path.write_text("\n".join(_lines("", settings)))
    return path


def _lines(table: str, settings: dict[str, Any]) -> Iterator[str]:
    plain = {k: v for k, v in settings.items() if not isinstance(v, dict)}
    if table:
        yield f"[{table}]"
    for key, value in plain.items():
        yield f"{key} = {_inline(value)}"
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _lines(f"{table}.{key}" if table else key, value)


def _inline(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_inline(each)}' for key, each in value.items())} }}"
    return json.dumps(value)
