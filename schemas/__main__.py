"""Write the JSON Schema and the Avro schema of every record beside its definition."""

from pathlib import Path

import orjson

from fluxplain.schemas import RECORDS, Record
from fluxplain.schemas.avro import avro_schema

FOLDER = Path(__file__).parent


def schema_path(record: type[Record]) -> Path:
    """Return the path of a record's JSON Schema."""
    return FOLDER / f"{record.TOPIC}.schema.json"


def files(record: type[Record]) -> dict[Path, bytes]:
    """Return the content of a record's JSON Schema and Avro schema files."""
    schemas = {
        schema_path(record): record.json_schema(),
        FOLDER / f"{record.TOPIC}.avsc": avro_schema(record),
    }
    indent = orjson.OPT_INDENT_2
    return {path: orjson.dumps(each, option=indent) + b"\n" for path, each in schemas.items()}


if __name__ == "__main__":
    for kind in RECORDS:
        for path, content in files(kind).items():
            path.write_bytes(content)
