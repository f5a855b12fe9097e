"""The streams of ksqlDB: what is published fits their columns."""

import re
from dataclasses import fields
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.docs.ksql import STREAMS, statement
from fluxplain.schemas import Record
from tests.kit.any_records import ANY
from tests.kit.support import PROPERTY

COLUMN = re.compile(r"^  `(\w+)` (.+?),?$", re.MULTILINE)


def columns(record: type[Record]) -> dict[str, str]:
    """Return name → type of what is no key."""
    return {name: kind for name, kind in COLUMN.findall(statement(record)) if kind != "VARCHAR KEY"}


COLUMNS: dict[type[Record], dict[str, str]] = {record: columns(record) for record in STREAMS}


def fits(value: Any, kind: str) -> bool:
    """Return whether ksqlDB reads a value of JSON as a type: as text it reads whatever it is."""
    if value is None or kind == "VARCHAR":
        return True
    if kind.startswith("ARRAY<"):
        return isinstance(value, list) and all(fits(each, kind[6:-1]) for each in value)
    if kind.startswith("STRUCT<"):
        parts = dict(re.findall(r"`(\w+)` ((?:[^,<]|<[^>]*>)+)", kind[7:-1]))
        return value.keys() == parts.keys() and all(
            fits(value[name], parts[name]) for name in parts
        )
    types: dict[str, tuple[type, ...]] = {
        "BIGINT": (int,),
        "DOUBLE": (int, float),
        "BOOLEAN": (bool,),
    }
    return type(value) in types[kind]


@pytest.mark.parametrize("record", STREAMS, ids=lambda record: record.__name__)
def test_there_is_a_column_for_each_field(record: type[Record]) -> None:
    assert list(COLUMNS[record]) == [field.name for field in fields(record)]
    assert "`message_key` VARCHAR KEY" in statement(record)


@PROPERTY
@given(st.one_of([ANY[kind] for kind in STREAMS]))
def test_every_record_fits_its_columns(record: Record) -> None:
    values = orjson.loads(record.encode())
    assert [
        name for name, kind in COLUMNS[type(record)].items() if not fits(values[name], kind)
    ] == []


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("7", "BIGINT"),
        (7.5, "BIGINT"),
        (True, "BIGINT"),
        ([1], "ARRAY<ARRAY<BIGINT>>"),
        ({}, "DOUBLE"),
    ],
)
def test_what_does_not_fit_is_found(value: object, kind: str) -> None:
    assert not fits(value, kind)
