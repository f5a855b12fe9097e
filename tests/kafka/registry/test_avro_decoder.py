"""Messages in the wire format: what is in them, and why something cannot be read."""

import json
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from confluent_kafka import Message as KafkaMessage
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.registry import avro_values as avro
from fluxplain.kafka.registry import codec as module
from fluxplain.kafka.registry.codec import HEADER, framed
from fluxplain.kafka.registry.registry_client import RegistryError
from fluxplain.schemas import BadRecordError
from fluxplain.stages import Message, process
from fluxplain.stages.join_stage import JoinStage, PassedOn
from tests.kit.registry import RegistryServer, avro_of, decoder_of
from tests.kit.support import PROPERTY

POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": {"type": "map", "values": ["null", "double", "string"]}}],
}


def message(value: bytes | None, headers: dict[str, bytes] | None = None) -> Message:
    return Message("features", 0, 7, b"key", value, headers=headers or {})


def fields(server: RegistryServer, value: bytes, **headers: bytes) -> dict[str, Any]:
    return decoder_of(server).opened(message(value, headers)).fields()


def record_of(**kinds: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    return {"type": "record", "name": "R", "fields": fields}


def reason(server: RegistryServer, value: bytes, **headers: bytes) -> str:
    with pytest.raises(BadRecordError) as caught:
        fields(server, value, **headers)
    return str(caught.value)


def test_avro_and_json_are_as_plain_json_would_be(server: RegistryServer) -> None:
    x = {"a": 1.5, "b": None, "c": "red"}
    of_avro, text = server.add("a", POINT), server.add("j", "{}", "JSON")
    assert fields(server, framed(of_avro, avro_of(POINT, {"x": x}))) == {"x": x}
    assert fields(server, framed(text, orjson.dumps({"x": x}))) == {"x": x}


def test_plain_json_is_left_as_it_is_and_nobody_is_asked(server: RegistryServer) -> None:
    for value in (b'{"x": {"a": 1}}', b"oops", b"", None):
        plain = message(value)
        decoder = decoder_of(server)
        assert decoder.is_known(plain)
        assert decoder.opened(plain) is plain
    assert not server.asked


def test_the_schema_may_be_named_in_a_header(server: RegistryServer) -> None:
    id_ = server.add("a", POINT)
    value = avro_of(POINT, {"x": {"a": 1.0}})
    by_id, by_uuid = struct.pack(">bI", 0, id_), b"\x01" + UUID(int=id_).bytes
    for header in (by_id, by_uuid):
        assert fields(server, value, **{HEADER: header}) == {"x": {"a": 1.0}}
    for header in (b"", b"\x00\x00", b"\x02" + by_id[1:], by_uuid[:-1]):
        assert reason(server, value, **{HEADER: header}) == f"the header {HEADER} names no schema"


def test_what_was_joined_is_read_as_before(server: RegistryServer) -> None:
    id_ = server.add("a", POINT)
    value, header = avro_of(POINT, {"x": {"a": 1.0}}), struct.pack(">bI", 0, id_)
    [passed] = process(JoinStage(), message(value, {HEADER: header}))
    assert isinstance(passed, PassedOn)
    assert fields(server, passed.value, **passed.message_headers()) == {"x": {"a": 1.0}}


def test_each_schema_is_asked_for_once(server: RegistryServer) -> None:
    ids = [server.add(f"s{i}", {**POINT, "name": f"P{i}"}) for i in range(3)]
    decoder = decoder_of(server)
    for id_ in ids * 4:
        wire = message(framed(id_, avro_of(POINT, {"x": {}})))
        assert decoder.opened(wire).fields() == {"x": {}}
        assert decoder.is_known(wire)
    assert len(server.asked) == 3


def test_few_schemas_are_remembered_those_that_were_used_last(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SCHEMAS", 2)
    values = [
        message(framed(server.add(f"s{i}", f"{{{i * ' '}}}", "JSON"), b"{}")) for i in (0, 1, 2)
    ]
    decoder = decoder_of(server)
    for i in (0, 1, 0, 2):
        decoder.opened(values[i])
    assert [decoder.is_known(value) for value in values] == [True, False, True]


def test_a_schema_that_is_unknown_is_the_records_fault_and_asked_for_again(
    server: RegistryServer,
) -> None:
    wire = message(framed(1, avro_of(POINT, {"x": {"a": 2.0}})))
    decoder = decoder_of(server)
    unknown = decoder.opened(wire)
    with pytest.raises(BadRecordError, match="the schema registry has no schema 1: Schema not"):
        unknown.fields()
    assert unknown.dead_letter("").original() == wire.value, "as it was"
    server.add("a", POINT)
    assert decoder.opened(wire).fields() == {"x": {"a": 2.0}}


def test_a_registry_that_does_not_answer_is_not_the_records_fault(server: RegistryServer) -> None:
    wire = message(framed(server.add("a", POINT), avro_of(POINT, {"x": {}})))
    decoder = decoder_of(server)
    server.failure = 503, b"busy"
    with pytest.raises(RegistryError):
        decoder.opened(wire)
    server.failure = None
    assert decoder.opened(wire).fields() == {"x": {}}
    server.stop()
    assert decoder.opened(wire).fields() == {"x": {}}, "it is known"
    server.start_again()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x00\x00\x01", "the message ends within the id of its schema"),
        (framed(1, b""), "not Avro of its schema: EOFError"),
        (framed(1, avro_of(POINT, {"x": {}}) + b"!!"), "not Avro of its schema: 2 bytes are left"),
        (framed(2, b"\x02"), "not a record, as its schema says"),
        (framed(3, b"{"), "not JSON: "),
        (framed(3, b"[1]"), "not a JSON object, but an array [1]"),
        (framed(4, b"\x00"), "its schema is PROTOBUF, but only JSON Schema and Avro are read"),
        (framed(5, b"\x00"), "its schema cannot be read as Avro: "),
        (framed(6, b"\x00"), "its schema is recursive (Node)"),
        (framed(7, b"\xfe\xff\xff\xff\x0f"), "its schema has a part that needs no bytes (null)"),
    ],
)
def test_what_cannot_be_read_is_told(server: RegistryServer, value: bytes, expected: str) -> None:
    node = {"name": "next", "type": ["null", "Node"], "default": None}
    nothings = {"name": "a", "type": {"type": "array", "items": "null"}}
    for schema, kind in (
        (POINT, "AVRO"),
        ('"boolean"', "AVRO"),
        ("{}", "JSON"),
        ("message M {}", "PROTOBUF"),
        ('{"type": "recor"}', "AVRO"),
        ({"type": "record", "name": "Node", "fields": [node]}, "AVRO"),
        ({"type": "record", "name": "Many", "fields": [nothings]}, "AVRO"),
    ):
        server.add(f"s{len(server.subjects)}", schema, kind)
    told = reason(server, value)
    assert told.startswith(expected)
    assert "\n" not in told


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
NOON_5_MS = "2026-03-01T12:00:00.005000Z"
INNER = {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (logical("long", "timestamp-millis"), NOON.replace(microsecond=5000), NOON_5_MS),
        (logical("long", "timestamp-micros"), NOON, "2026-03-01T12:00:00Z"),
        (logical("long", "local-timestamp-millis"), NAIVE, "2026-03-01T12:00:00"),
        (logical("int", "date"), date(2026, 3, 1), "2026-03-01"),
        (logical("int", "time-millis"), time(12, 30), "12:30:00"),
        (logical("string", "uuid"), UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (logical("bytes", "decimal", precision=6, scale=2), Decimal("1.25"), 1.25),
        (logical("bytes", "decimal", precision=6, scale=0), Decimal(7), 7),
        ("bytes", b"\x00\xff", "\x00\xff"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "ab"),
        ("float", 0.5, 0.5),
        ("double", float("nan"), "nan"),
        ("double", float("-inf"), "-inf"),
        ({"type": "array", "items": "long"}, [1, 2**62], [1, 2**62]),
        ({"type": "array", "items": "long", "name": "needless"}, [1], [1]),
        ({"type": "string", "name": "needless"}, "a", "a"),
        (["null", INNER], {"a": 1}, {"a": 1}),
    ],
)
def test_values_are_what_json_has_for_them(
    server: RegistryServer, kind: Any, value: Any, expected: Any
) -> None:
    schema = record_of(v=kind)
    told = fields(server, framed(server.add("a", schema), avro_of(schema, {"v": value})))
    assert told == {"v": expected}
    assert type(told["v"]) is type(expected)
    orjson.dumps(told)


def test_a_schema_may_refer_to_another(server: RegistryServer) -> None:
    server.add("point", POINT)
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "point", "type": "Point"}]}
    refers = [{"name": "Point", "subject": "point", "version": 1}]
    id_ = server.add("outer", outer, references=refers)
    value = avro_of([POINT, outer], ("Outer", {"point": {"x": {"a": 1.0}}}))[1:]
    assert fields(server, framed(id_, value)) == {"point": {"x": {"a": 1.0}}}


def test_for_people_a_message_is_plain_json_if_it_can_be(server: RegistryServer) -> None:
    of_avro, text = server.add("a", POINT), server.add("j", "{}", "JSON")
    deep = b'{"x":' + b"[" * 300 + b"]" * 300 + b"}"
    nested: Any = "long"
    for _ in range(300):
        nested = {"type": "array", "items": nested}
    too_deep = framed(server.add("d", record_of(v=nested)), b"\x02" * 301 + b"\x00" * 300)
    for value, expected in (
        (framed(of_avro, avro_of(POINT, {"x": {"a": 1.0}})), b'{"x":{"a":1.0}}'),
        (framed(text, b'{ "x": 1 }'), b'{ "x": 1 }'),
        (framed(text, deep), deep),
        (b'{"plain": 1}', b'{"plain": 1}'),
        (too_deep, too_deep),
        (framed(99, b"unknown"), framed(99, b"unknown")),
        (None, None),
    ):
        read = KafkaMessage(topic="t", value=value)
        decoder_of(server).open_in_place(read)
        assert read.value() == expected


@PROPERTY
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_told(payload: bytes) -> None:
    kinds = {
        "a": {"type": "array", "items": ["null", "string", "double"]},
        "m": {"type": "map", "values": "bytes"},
        "t": logical("long", "timestamp-millis"),
        "d": logical("bytes", "decimal", precision=9, scale=3),
    }
    read = avro.reader([json.dumps(record_of(**kinds))])
    told = ""
    try:
        orjson.dumps(read(payload))
    except BadRecordError as error:
        told = str(error)
    assert not told or told.startswith("not Avro of its schema: ")


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("digits", [1_000, 100_000])
def test_a_very_long_decimal_is_not_written_in_digits(
    server: RegistryServer, *, is_fixed: bool, digits: int
) -> None:
    number = 10**digits - 1
    size = (number.bit_length() + 8) // 8
    kind = {"type": "fixed", "name": "F", "size": size} if is_fixed else {"type": "bytes"}
    decimal = {"logicalType": "decimal", "precision": digits, "scale": 2}
    payload = avro_of(record_of(v=kind), {"v": number.to_bytes(size, signed=True)})
    value = framed(server.add("a", record_of(v={**kind, **decimal})), payload)
    opened = decoder_of(server).opened(Message("t", 0, 0, None, value))
    if digits == 1_000:
        assert opened.fields() == {"v": float("inf")}  # and so no value of a feature
    else:
        assert opened.flaw == (
            f"not Avro of its schema: ValueError: a decimal has {size:,} bytes, but must have at "
            "most 416"
        )
