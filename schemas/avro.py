"""The Avro schema of a record, from its JSON Schema: the same values, exactly.

- What may be null has null as its default, so that a reader knows what to take for a new field.
- What may be of several types is a union. JSON's integers go up to 2⁶⁴ - 1 there, and Avro's only
  up to 2⁶³ - 1, so a union with integers has a decimal too, for those beyond.
- A union can have one kind of array: arrays of arrays and arrays of numbers are arrays of either.
- Names of kinds and methods are texts: Avro's enumerations allow no hyphens.
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
    """Writes each named type once, and then by its name.

    Parameters
    ----------
    known
        Name → what a JSON Schema refers to by it.
    """

    def __init__(self, known: Schema) -> None:
        self._known = known
        self._written: set[str] = set()

    def record(self, name: str, schema: Schema) -> dict[str, Any]:
        """Return the type of an object with stated fields."""
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
        # each before what could hold it too, but not exactly
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
    """Return what the items of an array may be; those of a tuple are of all of its types."""
    return [array["items"]] if "items" in array else array["prefixItems"]


def _flat(schema: Schema) -> Iterator[Schema]:
    """Yield what a value may be, one by one."""
    if "anyOf" in schema:
        for kind in schema["anyOf"]:
            yield from _flat(kind)
    else:
        yield schema
