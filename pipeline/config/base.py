"""Base class, value types and error wording shared by the tables of the settings."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model

from fluxplain.errors import UserError, shown
from fluxplain.loading import import_strings
from fluxplain.spelling import closest

ENV_PREFIX = "FLUXPLAIN_"


class ConfigError(UserError, ValueError):
    """A setting that cannot be used. The message names the key, the value and what is allowed."""


class Section(BaseModel):
    """A table of the configuration file; unknown keys are errors.

    The docstring below a field is its description in the documentation. A ``ValueError`` raised for
    a whole table begins with the key at fault.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


S = TypeVar("S", bound=Section)


def with_tables(section: type[S], tables: Mapping[str, type[Section]]) -> type[S]:
    """Return the class of a table with tables in it, whose keys all have defaults."""
    fields: dict[str, Any] = {name: (kind, kind()) for name, kind in tables.items()}
    return create_model(
        section.__name__,
        __base__=section,
        __module__=section.__module__,
        __doc__=section.__doc__,
        **fields,
    )


def is_bare_key(name: str) -> bool:
    """Return whether TOML takes a key without quotes."""
    return re.fullmatch(r"[\w-]+", name, re.ASCII) is not None


def is_reference(value: str) -> bool:
    """Return whether a text is an import string, ``module:name``."""
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", value) is not None


def _reference(value: str) -> str:
    if is_reference(value):
        return value
    raise ValueError("must be 'module:name', as 'river.tree:HoeffdingTreeClassifier'")


Reference = Annotated[str, AfterValidator(_reference)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=249)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(gt=0.0, le=1.0)]
Port = Annotated[int, Field(ge=0, le=65535)]


def wrong(key: str, value: object, reason: str) -> ValueError:
    """Return the error for a value that does not fit.

    >>> wrong("ipfi.warm_up", 101, "must be at most reservoir_size, 100")
    ValueError('ipfi.warm_up is 101, but must be at most reservoir_size, 100')
    """
    return ValueError(f"{key} is {shown(value)}, but {reason}")


def meant(value: str, allowed: Iterable[str]) -> str:
    """Return a hint at the allowed value that is closest to a wrong one, if any is similar.

    >>> meant("crossentropy", ["brier", "cross_entropy"])
    "; did you mean 'cross_entropy'?"
    """
    found = closest(value, allowed)
    return "" if found is None else f"; did you mean {found!r}?"


def check_names(
    key: str, names: Iterable[str], allowed: Collection[str], what: str = "features"
) -> None:
    """Raise ``ValueError`` for a name that is not among the allowed ones."""
    for name in names:
        if name not in allowed:
            raise ValueError(
                f"{key} has {name!r}, but must have {what} only: {', '.join(allowed)}"
                f"{meant(name, allowed)}"
            )


def variable(table: str, key: str) -> str:
    """Return the environment variable of a key."""
    return f"{ENV_PREFIX}{table.upper()}__{key.upper()}"


def load(key: str, reference: str) -> Callable[..., Any]:
    """Import ``module:name``, also from the working directory; errors name the key."""
    try:
        return import_strings.load(reference)
    except ValueError as error:
        raise ConfigError(f"{key} = {reference!r}: {error}") from error


def content(file: Path, origin: str) -> bytes:
    """Read a file; errors begin with its origin, the setting that names it."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{origin}: cannot be read: {error.strerror}") from None
