"""Consumers of other kinds, as the documents show them."""

import subprocess
from pathlib import Path

import orjson
import pytest

from deploy.kafka.java import jars, java
from fluxplain.config import Config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.worker.outbox import Outbox
from tests.docs.documents import snippets
from tests.kit.records import change

PAGE = "deploy/docs/ecosystem.md"


@pytest.fixture(autouse=True)
def changes_that_came_twice(config: Config) -> None:
    producer = RecordProducer(config)
    outbox = Outbox(config, producer, partitions=4)
    for _ in range(2):
        for seq in range(3):
            outbox.send(change("elevel", seq), None, 0)
        outbox.send_all()
    producer.flush()


def code(language: str, config: Config) -> str:
    """Return what the page shows, for this broker and prefix."""
    texts = [each.text for each in snippets(language) if each.document == PAGE]
    [text] = [each for each in texts if "localhost:9092" in each]
    text = text.replace("localhost:9092", config.kafka.bootstrap_servers)
    return text.replace("fluxplain.changes", config.topic("changes")).replace(
        "my-changes", config.topic("my-changes")
    )


def test_in_python_each_change_comes_once(config: Config) -> None:
    names: dict[str, object] = {}
    exec(code("python", config), names)
    changes = names["changes"]()  # type: ignore[operator]
    assert [next(changes)["seq"] for _ in range(3)] == [0, 1, 2]


@pytest.mark.kafka
def test_in_java_keys_and_values_are_text(config: Config, tmp_path: Path) -> None:
    source = tmp_path / "Changes.java"
    source.write_text(code("java", config))
    command = [java(), "-cp", f"{jars(print)}/*", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        process.kill()
    keys, values = zip(*(line.split(" ", 1) for line in lines), strict=True)
    assert set(keys) == {"elevel"}
    assert [orjson.loads(value)["seq"] for value in values] == [0, 1, 2, 0, 1, 2]
