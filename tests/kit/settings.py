"""The small pipeline that tests share, and its settings as a file."""

import math
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluxplain.schemas.methods import METHODS

FEATURES = {
    **dict.fromkeys(("salary", "commission", "age", "hvalue", "hyears", "loan"), "numeric"),
    **dict.fromkeys(("elevel", "car", "zipcode"), "categorical"),
}


def default_methods(size: int, inner_samples: int, grid_size: int) -> dict[str, Any]:
    """Return the settings of the default methods, with reservoirs and storages of one size."""
    return {
        "ipfi": {"reservoir_size": size},
        "isage": {"reservoir_size": size, "inner_samples": inner_samples},
        "ipdp": {"storage_size": size, "grid_size": grid_size},
    }


def all_methods(size: int, inner_samples: int, grid_size: int) -> dict[str, Any]:
    """Return the settings of all methods, also of those that are off by default."""
    return {
        **default_methods(size, inner_samples, grid_size),
        "methods": [*METHODS],
        "ishap": {"reservoir_size": size, "inner_samples": inner_samples},
        "interaction": {"reservoir_size": size},
    }


QUICK_DRIFT = {
    "detector": "adwin",
    "delta": 0.002,
    "params": {"min_window_length": 5},
    "min_effect": 0.0,
}
"""Short streams must show changes, of iPDP too."""

SENSITIVE_DRIFT = {
    "detector": "adwin",
    "delta": 0.3,
    "params": {"clock": 8, "min_window_length": 5},
    "min_effect": 0.0,
}
"""Streams of a few hundred observations must show changes."""

EAGER_DRIFT: dict[str, Any] = {
    "detector": "adwin",
    "min_effect": 0.0,
    "delta": 0.5,
    "grace_period": 3,
}
"""Streams of a hundred observations must show changes."""

SETTINGS: dict[str, Any] = {
    "seed": 7,
    "features": FEATURES,
    "label": {"type": "integer"},
    "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 2}},
    "explain": {"loss": "brier", "alpha": 0.01, "emit_every": 3, **default_methods(50, 2, 4)},
    "drift": QUICK_DRIFT,
    "reasons": {"enabled": True, "share": 0.3, "reservoir_size": 20, "most_inputs": 400},
    # pipelines run side by side, and there is one port
    "dashboard": {"enabled": False},
}
"""A small pipeline with the default methods and reasons, quick to warm up."""


NOT_INSTALLED = {"factory": "not_installed:Model"}
"""A model of which only the workers know: who reads topics must get along without it."""


REAL_KAFKA = os.environ.get("TEST_KAFKA")
"""Addresses of a real Kafka, which `make test-kafka` starts; None for the embedded broker."""


Configure = Callable[..., Path]
"""Writes settings with the tables that it is given."""


def topic_store(folder: Path) -> dict[str, Any]:
    """Return the settings of checkpoints in a topic, with a key of their own."""
    key_file = folder / "checkpoint-key"
    key_file.write_text(uuid.uuid4().hex)
    return {"store": "topic", "key_file": str(key_file)}


def topics(prefix: str) -> dict[str, Any]:
    """Return the same topics on either broker."""
    return {"prefix": prefix, "features_partitions": 4, "partitions": 4}


def write_config(path: Path, settings: dict[str, Any]) -> Path:
    path.write_text(toml_file(settings))
    return path


def toml_file(settings: dict[str, Any]) -> str:
    return "\n".join(f"{toml(name)} = {toml(value)}" for name, value in settings.items())


def toml(value: Any) -> str:
    """Return a value as TOML, in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{value:+}"
    if isinstance(value, str):
        return '"' + "".join(_escaped(c) for c in value) + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return str(value)


def _escaped(character: str) -> str:
    # half characters cannot be written: one in a text makes a file that is no TOML
    plain = character.isprintable() and character not in '"\\'
    return character if plain else f"\\U{ord(character):08X}"
