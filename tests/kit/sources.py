"""Rows of a file or data set, read with few settings."""

from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.sources import FEATURES_ONLY, Columns, SourceError, open_source


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


def refusal(source: str, columns: Columns = FEATURES_ONLY, settings: Config | None = None) -> str:
    """Return why a source cannot be opened: one line, which begins with its name."""
    with pytest.raises(SourceError) as caught:
        open_source(source, settings or config(), columns)
    reason = str(caught.value)
    assert reason.startswith((source, f"cannot read {source}", "the label is"))
    assert "\n" not in reason
    return reason


def typed(values: list[Any]) -> list[tuple[type, Any]]:
    """Return values that equal others only if their types do."""
    return [(type(value), value) for value in values]
