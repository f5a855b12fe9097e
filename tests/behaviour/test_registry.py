"""A schema registry changes nothing that is computed, and one that is away is waited for."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from fluxplain.config import RegistrySettings
from fluxplain.kafka.registry.codec import framed
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import OUTPUTS
from tests.kit.kafka_pipeline import KafkaPipeline, Published, Start, assert_same, reference
from tests.kit.registry import RegistryServer, avro_of
from tests.kit.settings import SENSITIVE_DRIFT, Configure
from tests.kit.streams import observations
from tests.kit.workers import wait_for

INTEGERS = ("age", "elevel", "car", "zipcode", "hyears")

APPLICATION = {
    "type": "record",
    "name": "Application",
    "fields": [
        {"name": name, "type": "int" if name in INTEGERS else "double"}
        for name in orjson.loads(observations(1)[0])["x"]
    ],
}

OBSERVATION: dict[str, Any] = {
    "type": "record",
    "name": "Loan",
    "namespace": "bank",
    "fields": [{"name": "x", "type": APPLICATION}, {"name": "y", "type": ["null", "int"]}],
}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def prefixes(pipeline: KafkaPipeline) -> dict[str, set[bytes]]:
    """Return topic → what its messages begin with, as any consumer gets them."""
    plain = pipeline.config.model_copy(update={"registry": RegistrySettings()})
    found: dict[str, set[bytes]] = {}
    with TopicReader(plain, list(OUTPUTS), from_beginning=True) as reader:
        for message in reader.until(reader.extent()):
            found.setdefault(reader.name(message), set()).add((message.value() or b"")[:5])
    return found


def good(published: Published) -> Published:
    """Return what was published, without dead letters."""
    return {key: values for key, values in published.items() if key[0] != "dead-letters"}


@pytest.mark.embedded
def test_avro_in_and_out_gives_the_same_bit_for_bit_and_a_registry_that_is_away_is_waited_for(
    start: Start, configure: Configure, server: RegistryServer
) -> None:
    configure(drift=SENSITIVE_DRIFT, registry={"url": server.url, "output": "avro"})
    plain = observations(300)
    of_avro, of_json = server.add("a", OBSERVATION), server.add("j", "{}", "JSON")
    formats: list[Callable[[bytes], bytes]] = [
        lambda value: value,
        lambda value: framed(of_json, value),
        lambda value: framed(of_avro, avro_of(OBSERVATION, orjson.loads(value))),
    ]
    sent = [formats[seq % 3](value) for seq, value in enumerate(plain)]
    bad = {
        50: (framed(999, b"{}"), "the schema registry has no schema 999: Schema not found"),
        70: (framed(of_avro, b"\x00"), "not Avro of its schema: EOFError"),
        180: (b"\x00\x01", "the message ends within the id of its schema"),
        220: (framed(server.add("p", "", "PROTOBUF"), b""), "its schema is PROTOBUF, but only"),
    }
    for seq, (value, _) in bad.items():
        plain[seq], sent[seq] = b"", value
    new = server.add("new", {**OBSERVATION, "name": "NewLoan"})
    sent[150] = framed(new, avro_of(OBSERVATION, orjson.loads(plain[150])))
    server.stop()
    with start() as pipeline:
        pipeline.wait_until(lambda: "does not answer" in pipeline.log)
        server.start_again()
        pipeline.process(sent[:120])
        server.stop()
        pipeline.send(sent[120:])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] == 150 - 2)
        health = pipeline.workers.address("model-1")
        assert "does not answer" in wait_for(f"{health}/readyz", 503)["waits_for"]
        assert wait_for(f"{health}/healthz", 200)["stalled"] is None, "a new start is of no use"
        server.start_again()
        pipeline.wait_until_idle()
        assert wait_for(f"{health}/readyz", 200)["waits_for"] is None
    assert_same(good(pipeline.published), good(reference(pipeline.config, plain)))
    assert pipeline.counts()["changes"] > 0
    letters = pipeline.records("dead-letters")
    assert [letter["offset"] for letter in letters] == [*bad]
    for letter in letters:
        assert letter["reason"].startswith(bad[letter["offset"]][1])
    assert prefixes(pipeline) == {
        name: {framed(id_, b"")}
        for name in OUTPUTS
        for id_ in server.subjects[f"{pipeline.config.topic(name)}-value"]
    }
