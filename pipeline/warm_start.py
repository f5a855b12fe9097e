"""Files with what explanations have learned, for a pipeline that starts with it."""

import hashlib
import json
import pickle
from collections.abc import Mapping
from typing import Any

from pipeline import __version__

FORMAT = "fluxplain-explanations-1"

Part = str
"""What a role needs of the file; it unpickles no other."""


def written(parts: Mapping[Part, object], settings: Mapping[str, Any]) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    parts
        What to keep.
    settings
        What must be as it is now where the file is read: key → value, of JSON.
    """
    state = pickle.dumps({name: pickle.dumps(part) for name, part in parts.items()})
    digest = hashlib.sha256(state).hexdigest()
    header = {"format": FORMAT, "fluxplain": __version__, "sha256": digest, "settings": settings}
    return json.dumps(header).encode() + b"\n" + state


def read(data: bytes, settings: Mapping[str, Any], part: Part | None = None) -> Any:
    """Return a part of what was kept, once it is seen to fit; None if none is asked for.

    Unpickling runs code, so the file must be this user's own.

    Raises
    ------
    ValueError
        If it is no such file, or of another version or other settings. The text goes on behind the
        name of the file.

    Examples
    --------
    >>> data = written({"numbers": [1, 2]}, {"seed": 42})
    >>> read(data, {"seed": 42}, "numbers")
    [1, 2]
    >>> read(data, {"seed": 43}, "numbers")
    Traceback (most recent call last):
    ValueError: was written with seed = 42, but here it is 43: it must be the same
    """
    line, _, state = data.partition(b"\n")
    try:
        header = json.loads(line)
        is_one = header["format"].startswith("fluxplain-explanations-")
        is_one = is_one and isinstance(header["settings"], dict)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        is_one = False
    if not is_one:
        raise ValueError("is none of `fluxplain model export --explanations`")
    here = {"format": FORMAT, "fluxplain": __version__}
    for name, value in here.items():
        if header.get(name) != value:
            raise ValueError(f"has {name} {header.get(name)!r}, but this is {value!r}")
    if header.get("sha256") != hashlib.sha256(state).hexdigest():
        raise ValueError("is not whole, or was changed since it was written")
    _check_settings(header["settings"], settings)
    if part is None:
        return None
    try:
        return pickle.loads(pickle.loads(state)[part])  # noqa: S301  of a local file
    except Exception as error:  # as of a library that has changed since
        raise ValueError(f"cannot be unpickled: {type(error).__name__}: {error}") from error


def _check_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in {**before, **now}:
        if before.get(key) != now.get(key):
            raise ValueError(
                f"was written with {key} = {json.dumps(before.get(key))}, but here it is "
                f"{json.dumps(now.get(key))}: it must be the same"
            )
