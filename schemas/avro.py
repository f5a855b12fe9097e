"""Converts a record's JSON Schema to an Avro schema that holds the same values exactly.

- A nullable field has the default null, so that readers can resolve fields added later.
- A field of several types is a union. Such a union has a decimal beside its integers: JSON integers
  go up to 2⁶⁴ - 1 here, Avro's long only up to 2⁶³ - 1.
- A union allows only one array type, so arrays of arrays and arrays of numbers become one array
  whose items are a union.
- Kinds and methods are strings, because Avro's enumerations allow no hyphens.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fluxplain.schemas.record import Record

NAMESPACE = "fluxplain"

BEYOND_LONG = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}

_SCALARS = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}

Schema = Mapping[str, Any]


def avro_schema(record: type[Record]) -> dict[str, Any]:
    """Return the Avro schema of a record.

    Examples
    --------
    >>> from fluxplain.schemas import LateLabel
    >>> [field["name"] for field in avro_schema(LateLabel)["fields"]]
    ['id', 'y', 'ts']
    """
    schema = record.json_schema()
    return _Writer(schema.get("$defs", {})).record(record.__name__, schema)


class _Writer:
    """Writes each of the known definitions in full once, and refers to it by name after that."""

    def __init__(self, known: Schema) -> None:
        self._known = known
        self._written: set[str] = set()

    def record(self, name: str, schema: Schema) -> dict[str, Any]:
        """Return the Avro record of an object with declared properties."""
        self._written.add(name)
        fields = [self._field(*each) for each in schema["properties"].items()]
        about, _, _ = schema["description"].partition("\n")
        return {
            "type": "record",
            "name": name,
            "namespace": NAMESPACE,
            "doc": about,
            "fields": fields,
        }

    def _field(self, name: str, schema: Schema) -> dict[str, Any]:
        kind = self._type(schema)
        field = {"name": name, "type": kind}
        if isinstance(kind, list) and kind[0] == "null":
            return {**field, "default": None}
        return {**field, **({"default": schema["default"]} if "default" in schema else {})}

    def _type(self, schema: Schema) -> Any:
        kinds = list(_flat(schema))
        types = {kind.get("type", kind.get("$ref")) for kind in kinds}
        union: list[Any] = ["null"] if "null" in types else []
        # most specific first: a double could hold an integer too, but not exactly
        for name, avro in _SCALARS.items():
            if name in types:
                union.append(avro)
                if name == "integer" and types - {"integer", "null"}:
                    union.append(BEYOND_LONG)
        union += [self._named(kind["$ref"]) for kind in kinds if "$ref" in kind]
        union += [self._map(kind) for kind in kinds if kind.get("type") == "object"]
        arrays = [kind for kind in kinds if kind.get("type") == "array"]
        if items := [item for kind in arrays for item in _items(kind)]:
            union.append({"type": "array", "items": self._type({"anyOf": items})})
        return union if len(union) > 1 else union[0]

    def _named(self, reference: str) -> Any:
        name = reference.rpartition("/")[2]
        if name in self._written:
            return f"{NAMESPACE}.{name}"
        return self.record(name, self._known[name])

    def _map(self, schema: Schema) -> Any:
        return {"type": "map", "values": self._type(schema["additionalProperties"])}


def _items(array: Schema) -> Iterable[Schema]:
    """Return the schemas of an array's items; for a tuple, those of all positions."""
    return [array["items"]] if "items" in array else array["prefixItems"]


def _flat(schema: Schema) -> Iterator[Schema]:
    """Yield the alternatives of a schema, with nested unions flattened."""
    if "anyOf" in schema:
        for kind in schema["anyOf"]:
            yield from _flat(kind)
    else:
        yield schema
