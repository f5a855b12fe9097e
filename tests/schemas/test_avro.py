"""Avro schemas: as the records are, and every record comes back exactly."""

import json
from dataclasses import fields
from typing import Any

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.registry.avro_values import reader, writer
from fluxplain.schemas import RECORDS, Prediction, Record
from fluxplain.schemas.avro import avro_schema
from tests.kit.any_records import ANY, types
from tests.kit.support import PROPERTY

every_kind = pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)


@every_kind
def test_there_is_a_field_for_each_of_the_record(kind: type[Record]) -> None:
    schema = avro_schema(kind)
    assert [field["name"] for field in schema["fields"]] == [field.name for field in fields(kind)]
    fastavro.parse_schema(schema)


@PROPERTY
@given(st.one_of([*ANY.values()]))
def test_every_record_comes_back_exactly(record: Record) -> None:
    kind = type(record)
    read = reader([json.dumps(avro_schema(kind))])
    told, expected = read(writer(kind)(record)), orjson.loads(record.encode())
    assert told == expected
    assert types(told) == types(expected)
    assert orjson.dumps(told) == record.encode(), "in the same order"


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, 2**63 - 1, -(2**63), 1, 1.0, True, "1"])
def test_a_value_of_several_types_stays_what_it_is(value: Any) -> None:
    record = Prediction("s-0", 0, None, None, None, value, None, None, None, None)
    read = reader([json.dumps(avro_schema(Prediction))])
    told = read(writer(Prediction)(record))["prediction"]
    assert (type(told), told) == (type(value), value)


@every_kind
def test_a_reader_with_a_newer_schema_knows_what_to_take_for_a_new_field(
    kind: type[Record],
) -> None:
    for field in avro_schema(kind)["fields"]:
        if isinstance(field["type"], list) and "null" in field["type"]:
            assert field["type"][0] == "null"
            assert field["default"] is None
