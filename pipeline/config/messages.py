"""Rewords Pydantic's errors: one line for each wrong setting, without secrets."""

import re
from typing import Any, get_args

from pydantic import SecretStr, ValidationError

from fluxplain.config.base import meant
from fluxplain.config.tables import Tables
from fluxplain.errors import shown
from fluxplain.spelling import hint

Location = tuple[int | str, ...]

_SHOULD = re.compile(r"^(Input|String|List) should")
"""How Pydantic's messages begin."""

_OWN = "Value error, "
"""Prefix that Pydantic adds to messages of this project's validators."""


def explain_errors(error: ValidationError) -> str:
    """Return one line per wrong setting; each begins with the key."""
    return "\n".join(map(_line, error.errors(include_url=False)))


def _line(item: Any) -> str:
    location: Location = item["loc"]
    key = ".".join(str(part) for part in location if part != "[key]")
    if item["type"] == "missing":
        return f"{key} is missing"
    if item["type"] == "extra_forbidden":
        return f"{key} is not a setting{_suggestion(location)}"
    text = _SHOULD.sub("must", item["msg"].removeprefix(_OWN))
    if item["msg"].startswith(_OWN) and (isinstance(item["input"], dict) or not key):
        return f"{key}.{text}" if key else text  # a whole table's error begins with a key
    hidden = _hidden(str(location[0]))
    if hidden and (len(location) == 1 or location[1] in hidden):
        return f"{key} cannot be used: {text}"  # never show a value that is or holds a secret
    return f"{key} is {shown(item['input'])}: {text}{_meant(item)}"


def _meant(item: Any) -> str:
    """Suggest the closest allowed value, where a setting allows a few texts."""
    if item["type"] != "literal_error" or not isinstance(item["input"], str):
        return ""
    allowed = re.findall(r"'([^']*)'", item["ctx"]["expected"])
    return meant(item["input"], allowed)


def secrets_of(table: str) -> list[str]:
    """Return a table's secret keys: set by the environment only, and never shown."""
    return [
        name for name, field in _keys([table]).items() if SecretStr in get_args(field.annotation)
    ]


def _hidden(table: str) -> list[str]:
    """Return a table's keys whose values are never shown: they are, or may hold, secrets."""
    return [*secrets_of(table), *(name for name, field in _keys([table]).items() if not field.repr)]


def _suggestion(location: Location) -> str:
    """Suggest the closest key and list the allowed ones, without secrets, which no file has."""
    *table, wrong = map(str, location)
    hidden = secrets_of(table[0]) if table else []
    names = [name for name in _keys(table) if name not in hidden]
    return f"{hint(wrong, names)}; allowed here: {', '.join(names)}" if names else ""


def _keys(path: list[str]) -> dict[str, Any]:
    """Return the fields of a table; none if the path is not a table."""
    fields: dict[str, Any] = dict(Tables.model_fields)
    for part in path:
        annotation = fields[part].annotation if part in fields else None
        fields = dict(getattr(annotation, "model_fields", {}))
    return fields
