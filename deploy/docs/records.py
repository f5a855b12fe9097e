"""Tables of the fields of all records, from their types and docstrings."""

import inspect
import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

from deploy.docs.words import table
from fluxplain.schemas import RECORDS
from fluxplain.schemas.change import Curve
from fluxplain.schemas.control import NewModel
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.prediction import LabelCounts
from fluxplain.schemas.record import Typed

PARTS = (Curve, Ice, LabelCounts, NewModel)
"""Objects nested in records."""

_ATTRIBUTE = re.compile(r"^(\S.*)\n((?:    .*\n?)+)", re.MULTILINE)

_ROLE = re.compile(r":\w+:`([^`]+)`")


def tables() -> dict[str, str]:
    """Return topic, or name of a nested object → table of its fields."""
    return {
        **{record.TOPIC: _table(record) for record in RECORDS},
        **{part.__name__: _table(part) for part in PARTS},
    }


def attributes(kind: type[Typed]) -> dict[tuple[str, ...], str]:
    """Return field names → their description in the docstring, as Markdown."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Attributes\n----------\n")
    found = _ATTRIBUTE.findall(section)
    return {tuple(names.split(", ")): _markdown(text) for names, text in found}


def notation(schema: dict[str, Any]) -> str:
    """Return a JSON Schema type in TypeScript's notation.

    Examples
    --------
    >>> notation({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}})
    '(number | null)[]'
    """
    match schema:
        case {"anyOf": kinds}:
            said = " | ".join(map(notation, kinds))
        case {"enum": values}:
            said = " | ".join(map(json.dumps, values))
        case {"$ref": path}:
            said = path.rpartition("/")[2]
        case {"prefixItems": kinds}:
            said = f"[{', '.join(map(notation, kinds))}]"
        case {"items": kind}:
            item = notation(kind)
            said = f"({item})[]" if " | " in item else f"{item}[]"
        case {"additionalProperties": dict(kind)}:
            said = f"{{[name]: {notation(kind)}}}"
        case _:
            said = schema["type"]
    return said


def _table(kind: type[Typed]) -> str:
    schemas = TypeAdapter(kind).json_schema()["properties"]
    rows = []
    for names, meaning in attributes(kind).items():
        types = [notation(schemas[name]) for name in names]
        said = types[:1] if len(set(types)) == 1 else types
        rows.append([_code(names), _code(said), meaning])
    return table(["field", "type", "meaning"], rows)


def _code(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _markdown(text: str) -> str:
    plain = _ROLE.sub(r"`\1`", " ".join(text.split())).replace("``", "`")
    return re.sub(r"\bNone\b", "null", plain)
