"""Records in the wire format: their schemas, and what readers find; and what needs the extra."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client import AccessError
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.registry.codec import (
    Decoder,
    Encoder,
    check_registry,
    open_decoder,
    open_encoder,
    unframed,
)
from fluxplain.kafka.registry.registry_client import RegistryError
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.schemas import OUTPUTS, Control, Prediction, Record
from fluxplain.schemas.avro import avro_schema
from fluxplain.stages import Message
from tests.kit.any_records import ANY
from tests.kit.recorder import Recorder, evaluation
from tests.kit.records import change, letter, prediction
from tests.kit.registry import RegistryServer, decoder_of
from tests.kit.support import PROPERTY, make_config

both = pytest.mark.parametrize("output", ["json", "avro"])


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def config_of(server: RegistryServer, output: str) -> Config:
    return make_config(registry={"url": server.url, "output": output})


@pytest.fixture(scope="module", params=["json", "avro"])
def both_ways(request: pytest.FixtureRequest, server: RegistryServer) -> tuple[Encoder, Decoder]:
    return Encoder(config_of(server, request.param)), decoder_of(server)


@PROPERTY
@given(record=st.one_of([ANY[kind] for kind in OUTPUTS.values()]))
def test_what_people_read_comes_back_exactly(
    both_ways: tuple[Encoder, Decoder], record: Record
) -> None:
    encoder, decoder = both_ways
    value = encoder.value(record)
    fields = decoder.opened(Message("t", 0, 0, None, value)).fields()
    assert value.startswith(b"\0")
    assert orjson.dumps(fields) == record.encode()


@both
def test_schemas_are_registered_once_under_the_names_of_the_topics(output: str) -> None:
    with RegistryServer() as server:
        for _ in range(2):
            Encoder(config_of(server, output))
        assert server.subjects == {
            f"fluxplain.{topic}-value": [n] for n, topic in enumerate(OUTPUTS, 1)
        }
        for n, kind in enumerate(OUTPUTS.values(), 1):
            expected = avro_schema(kind) if output == "avro" else kind.json_schema()
            assert json.loads(server.schema(n)["schema"]) == expected
            assert server.schema(n)["schemaType"] == output.upper()


@both
def test_topics_of_the_pipelines_own_stay_plain_json(server: RegistryServer, output: str) -> None:
    encoder = Encoder(config_of(server, output))
    for record in (evaluation(0), Control(every=2)):
        assert encoder.value(record) == record.encode()


@pytest.mark.parametrize("output", ["none", "json", "avro"])
def test_the_headers_of_a_change_tell_what_its_value_is(
    server: RegistryServer, output: str
) -> None:
    config = config_of(server, output)
    recorder = Recorder()
    encoder = None if output == "none" else Encoder(config)
    outbox = Outbox(config, cast(RecordProducer, recorder), 4, encoder=encoder)
    for record in (prediction(0), change("age", 0), letter(0)):
        outbox.send(record, b"key", 0, {"traceparent": b"00-1-2-01"})
    outbox.send_all()
    of_prediction, headers, of_letter = (dict(each or {}) for each in recorder.headers)
    assert of_prediction == of_letter == {"traceparent": b"00-1-2-01"}
    assert headers["traceparent"] == b"00-1-2-01"
    assert headers["ce_id"], "of a CloudEvent, as without a registry"
    if output == "none":
        assert headers["content-type"] == b"application/json"
    else:
        assert headers["content-type"] == b"application/octet-stream"
        found = unframed(recorder.sent[1][1], {})
        assert found is not None
        expected = f"{server.url}/schemas/ids/{found.schema}".encode()
        assert headers["ce_dataschema"] == expected


@pytest.mark.parametrize("wrong", [{"seq": 2**63}, {"seq": "7"}, {"stream": None}])
def test_what_has_no_place_in_the_schema_is_plain_json(
    server: RegistryServer, wrong: dict[str, Any]
) -> None:
    record = replace(prediction(0), **wrong)
    assert Encoder(config_of(server, "avro")).value(record) == record.encode()
    assert Encoder(config_of(server, "avro")).value(prediction(0)) != prediction(0).encode()


def test_a_registry_that_refuses_or_does_not_answer_is_told(server: RegistryServer) -> None:
    config = config_of(server, "avro")
    refusal = 409, {"error_code": 409, "message": "incompatible with an earlier schema"}
    subject = config.topic(Prediction.TOPIC)
    for failure, error, expected in (
        (refusal, AccessError, f"cannot register the schema of {subject}-value: .*incompatible"),
        ((500, b""), RegistryError, "fails: "),
    ):
        server.failure = failure
        with pytest.raises(error, match=expected):
            Encoder(config)
    server.failure = None


NEEDS_EXTRA = "fluxplain.kafka.registry.avro_values"


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # others may have loaded it
    monkeypatch.delitem(sys.modules, NEEDS_EXTRA, raising=False)
    monkeypatch.delattr(NEEDS_EXTRA, raising=False)
    monkeypatch.setitem(sys.modules, "fastavro", None)


@pytest.mark.usefixtures("without_extra")
def test_without_a_registry_nothing_is_needed() -> None:
    config = make_config()
    assert open_decoder(config) is None
    assert open_encoder(config) is None
    check_registry(config)


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize("open_", [open_decoder, open_encoder, check_registry])
def test_with_one_what_is_missing_is_told(open_: object) -> None:
    config: Config = make_config(registry={"url": "http://127.0.0.1:1", "output": "json"})
    expected = r"registry.url is set, but fastavro is not installed: pip install 'fluxplain\[reg"
    with pytest.raises(ConfigError, match=expected):
        open_(config)  # type: ignore[operator]
