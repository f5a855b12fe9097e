"""Warm-start files: pickled models, and the samples and estimates of explanations."""

import hashlib
import json
import pickle
from collections.abc import Mapping
from typing import Any

from fluxplain import __version__

FORMAT = "fluxplain-explanations-4"

Part = str
"""Name of a part of the file: a role unpickles only the one that it needs."""


def unpickled(data: bytes) -> Any:
    """Unpickle an object of a trusted file (this runs code); raise ``ValueError`` if it fails."""
    try:
        return pickle.loads(data)  # noqa: S301
    except Exception as error:  # its code may raise anything
        raise ValueError(f"it cannot be unpickled: {type(error).__name__}: {error}") from error


def written(parts: Mapping[Part, object], settings: Mapping[str, Any]) -> bytes:
    """Return the content of a file with these parts, for a pipeline with these settings."""
    state = pickle.dumps({name: pickle.dumps(part) for name, part in parts.items()})
    digest = hashlib.sha256(state).hexdigest()
    header = {"format": FORMAT, "fluxplain": __version__, "sha256": digest, "settings": settings}
    return json.dumps(header).encode() + b"\n" + state


def read(data: bytes, settings: Mapping[str, Any], part: Part | None = None) -> Any:
    """Check a file and return one part of it, or None without a part.

    Raises ``ValueError`` if it is another kind of file, damaged, or of another version or other
    settings.

    Examples
    --------
    >>> data = written({"numbers": [1, 2]}, {"seed": 42})
    >>> read(data, {"seed": 42}, "numbers")
    [1, 2]
    >>> read(data, {"seed": 43}, "numbers")
    Traceback (most recent call last):
    ValueError: it was written with seed = 42, but here it is 43: it must be the same
    """
    line, _, state = data.partition(b"\n")
    header = _header(line)
    here = {"format": FORMAT, "fluxplain": __version__}
    for name, value in here.items():
        if header.get(name) != value:
            raise ValueError(f"it has {name} {header.get(name)!r}, but this is {value!r}")
    if header.get("sha256") != hashlib.sha256(state).hexdigest():
        raise ValueError("it is incomplete, or was changed after it was written")
    _check_settings(header["settings"], settings)
    return None if part is None else unpickled(unpickled(state)[part])


def _header(line: bytes) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(line)
        if header["format"].startswith("fluxplain-explanations-"):
            dict(header["settings"])
            return header
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        pass
    raise ValueError("it is not a file of `fluxplain model export --explanations`")


def _check_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in {**before, **now}:
        if before.get(key) != now.get(key):
            raise ValueError(
                f"it was written with {key} = {json.dumps(before.get(key))}, but here it is "
                f"{json.dumps(now.get(key))}: it must be the same"
            )
