"""Rows of a file or data set, read with few settings."""

from typing import Any

import orjson

from fluxplain.config import Config
from fluxplain.sources import open_source


def config(label: str = "integer", **features: str) -> Config:
    fields: dict[str, Any] = {
        "features": features or {"age": "numeric", "city": "categorical"},
        "label": {"type": label},
        "model": {"factory": "river.dummy:NoChangeClassifier"},
        "seed": 7,
    }
    return Config(**fields)


def read(source: str, settings: Config, **options: Any) -> list[Any]:
    return [orjson.loads(value) for value in open_source(source, settings, **options)]
