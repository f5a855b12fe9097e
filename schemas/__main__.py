"""Write the JSON Schema and the Avro schema of every record beside its definition."""

from pathlib import Path

import orjson

from fluxplain.schemas import RECORDS, Record
from fluxplain.schemas.avro import avro_schema

FOLDER = Path(__file__).parent


def schema_path(record: type[Record]) -> Path:
    """Return the path of a record's JSON Schema."""
    return FOLDER / f"{record.TOPIC}.schema.json"


def schema_text(record: type[Record]) -> bytes:
    """Return the content of a record's JSON Schema file."""
    return orjson.dumps(record.json_schema(), option=orjson.OPT_INDENT_2) + b"\n"


def avro_path(record: type[Record]) -> Path:
    """Return the path of a record's Avro schema."""
    return FOLDER / f"{record.TOPIC}.avsc"


def avro_text(record: type[Record]) -> bytes:
    """Return the content of a record's Avro schema file."""
    return orjson.dumps(avro_schema(record), option=orjson.OPT_INDENT_2) + b"\n"


if __name__ == "__main__":
    for each in RECORDS:
        schema_path(each).write_bytes(schema_text(each))
        avro_path(each).write_bytes(avro_text(each))
