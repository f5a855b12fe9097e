"""Generates the tables of all settings, from the models that validate them."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from deploy.docs.words import allowed, code, table
from fluxplain.config import ENV_PREFIX, Config
from fluxplain.drift.detectors import DETECTORS, parameters


def tables() -> str:
    """Return a Markdown table for each table of the configuration file."""
    return "\n\n".join(_section(path, model) for path, model in sections())


def sections(path: str = "", model: type[BaseModel] = Config) -> Iterator[tuple[str, Any]]:
    """Yield path and model of each table; the path of the top level is empty."""
    yield path, model
    for name, field in model.model_fields.items():
        if _is_table(field):
            yield from sections(f"{path}.{name}".removeprefix("."), field.annotation)  # type: ignore[arg-type]


def detectors() -> str:
    """Return the table of each detector's parameters."""
    rows = [
        [code(name), f"`{key}`", code(default), allowed(TypeAdapter(kind).json_schema())]
        for name in DETECTORS
        for key, (default, kind) in parameters(name).items()
    ]
    return table(["detector", "parameter", "default", "allowed"], rows)


@cache
def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return key → its description, the docstring below the field."""
    ours = [kind for kind in model.__mro__ if kind.__module__.startswith("fluxplain.")]
    # a class that was made with tables in it has no source, but the name of the one that has
    written = {(kind.__module__, kind.__qualname__): kind for kind in ours}
    trees = [ast.parse(inspect.getsource(kind)).body[0] for kind in reversed(written.values())]
    return {
        ast.unparse(field.target): " ".join(ast.literal_eval(text.value).split())
        for tree in trees
        for field, text in pairwise(getattr(tree, "body", []))
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def _section(path: str, model: type[BaseModel]) -> str:
    schemas = model.model_json_schema()["properties"]
    rows = [
        _row(name, field, schemas[name], descriptions(model)[name])
        for name, field in model.model_fields.items()
        if not _is_table(field)
    ]
    settings = table(["key", "default", "meaning", "allowed"], rows)
    if not path:
        return settings
    about = (model.__doc__ or "").partition("\n")[0]
    variable = f"{ENV_PREFIX}{path.upper().replace('.', '__')}__"
    return f"### `[{path}]`\n\n{about} Environment variables: `{variable}<KEY>`.\n\n{settings}"


def _row(name: str, field: FieldInfo, schema: dict[str, Any], description: str) -> list[str]:
    is_secret = SecretStr in get_args(field.annotation)
    return [
        f"`{name}`",
        "required" if field.is_required() else _default(field),
        description,
        "text, only as an environment variable" if is_secret else _allowed(schema),
    ]


def _allowed(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:  # TOML has no null: a key is set or absent
        schema = {"anyOf": [kind for kind in schema["anyOf"] if kind != {"type": "null"}]}
    return allowed(schema)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default in (None, {}, []):
        return "none"
    return code(str(default) if isinstance(default, Path) else default)


def _is_table(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
