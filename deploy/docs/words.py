"""Tables in Markdown, and a setting's allowed values in words, from its JSON Schema."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

ONE = {
    "array": "a list of ",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "a table",
    "string": "text",
}

MANY = {
    "array": "lists of ",
    "boolean": "booleans",
    "integer": "integers",
    "number": "numbers",
    "object": "tables",
    "string": "texts",
}

BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "of at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


def allowed(schema: Schema) -> str:
    """Return the allowed values in words.

    Examples
    --------
    >>> allowed({"type": "integer", "minimum": 1, "maximum": 1000})
    'an integer from 1 to 1,000'
    >>> allowed({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "all"}]})
    'a number above 0, or `"all"`'
    >>> allowed({"type": "array", "items": {"enum": ["a", "b"]}})
    'a list of any of `"a"`, `"b"`'
    """
    if "anyOf" in schema:
        return ", or ".join(map(allowed, schema["anyOf"]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return ", ".join(map(code, values))
    if schema.get("format") == "path":
        return "a path"
    return ONE[schema["type"]] + _more(schema)


def code(value: Any) -> str:
    """Return a value in TOML's notation, as Markdown code.

    Examples
    --------
    >>> code("all"), code(0.5), code(True)
    ('`"all"`', '`0.5`', '`true`')
    """
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _many(schema: Schema) -> str:
    if "anyOf" in schema:
        *first, last = map(_many, schema["anyOf"])
        return f"{', '.join(first)} or {last}"
    return f"any of {allowed(schema)}" if "enum" in schema else MANY[schema["type"]] + _more(schema)


def _more(schema: Schema) -> str:
    if schema["type"] == "array":
        pair = schema.get("prefixItems")
        return f"{len(pair)} {_many(pair[0])}" if pair else _many(schema["items"])
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        return f" of {_many(values)}"
    if "pattern" in schema:
        return f" that matches `{schema['pattern']}`"
    if schema.keys() >= {"minimum", "maximum"}:
        return f" from {schema['minimum']:,.10g} to {schema['maximum']:,.10g}"
    bounds = [f"{word} {schema[name]:,.10g}" for name, word in BOUNDS.items() if name in schema]
    return f" {', '.join(bounds)}" if bounds else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table; pipes within cells are escaped.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "x|y"]]))
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    """
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
