"""``[kafka.client]`` reaches librdkafka's clients, and Faust's what it has an equivalent of."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException

from fluxplain.config.client_keys import refusal
from fluxplain.config.replica import Replica
from fluxplain.kafka import producer
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.faust import app, transport
from fluxplain.kafka.faust.connections import connection_settings
from fluxplain.kafka.producer import RecordProducer
from tests.kit.support import make_config

ROOT = Path(__file__).parents[2]

GIVEN = {"client": {"rack": "a", "id": "me"}, "socket.keepalive.enable": True, "linger.ms": 20}

DEFAULTS = {"linger.ms", "compression.type", "log_level"}
"""Keys that the product sets and users may, too: theirs win."""


def test_it_reaches_the_clients_of_librdkafka(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(kafka={"client": GIVEN})
    texts = {
        "client.rack": "a",
        "client.id": "me",
        "socket.keepalive.enable": "true",
        "linger.ms": "20",
    }
    assert texts.items() <= client_settings(config).items()
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(producer, "Producer", made.append)
    RecordProducer(config)
    assert made[0]["linger.ms"] == "20"
    assert made[0]["compression.type"] == "lz4"


def test_id_and_rack_reach_those_of_faust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = make_config(kafka={"client": GIVEN}, checkpoint={"directory": tmp_path})
    assert connection_settings(config.kafka)["client_id"] == "me"
    assert app._faust_app(config, Replica("model")).conf.broker_client_id == "me"
    made = SimpleNamespace(commit=None)
    name = "_create_worker_consumer"
    monkeypatch.setattr(transport._ConsumerThread.__bases__[0], name, lambda *_args: made)
    owner = SimpleNamespace(context=SimpleNamespace(config=config))
    thread = transport._ConsumerThread.__new__(transport._ConsumerThread)
    thread.consumer = SimpleNamespace(owner=owner)
    assert thread._create_worker_consumer(None)._client_rack == "a"


def _own_keys() -> set[str]:
    """Return the keys of librdkafka that are set somewhere in the product."""
    paths = [*(ROOT / "pipeline/kafka").rglob("*.py"), *(ROOT / "pipeline/alerts").rglob("*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    named = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys]
    texts = {each.value for each in named if isinstance(each, ast.Constant)}
    return {text for text in texts if isinstance(text, str) and _is_known(text)}


def _is_known(key: str) -> bool:
    try:
        Consumer({"log_level": 0, "group.id": "x", key: "?"}).close()
    except KafkaException as error:
        return "No such configuration property" not in error.args[0].str()
    except (TypeError, ValueError):
        return True
    return True


def test_what_the_product_sets_itself_is_refused() -> None:
    keys = _own_keys()
    assert {"acks", "isolation.level", "session.timeout.ms", "message.timeout.ms"} <= keys
    assert {key for key in keys if refusal(key) is None} == DEFAULTS
