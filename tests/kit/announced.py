"""Streams in which models are announced."""

from pathlib import Path
from typing import Any

import orjson

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Record
from fluxplain.stages import Message
from tests.kit.support import linear_config

STREAM = "fluxplain.observations-0"

COMMANDS = frozenset({"every", "model", "withdraw"})


def config_of(folder: Path, **model: Any) -> Config:
    return linear_config(
        control={"topic": True}, model={"version": "v1", "directory": str(folder), **model}
    )


def messages(config: Config, values: list[Any]) -> list[Message]:
    """Return them as in the topic that is joined: what is announced is from ``control``."""
    made = []
    newest: dict[str, int] = {}
    for offset, value in enumerate(values):
        is_control = isinstance(value, dict) and not COMMANDS.isdisjoint(value)
        topic = config.topic("control" if is_control else "features")
        data = orjson.dumps(value)
        headers = {"fluxplain-origin": f"{topic}-0@{offset}".encode()}
        if topic in newest:
            headers["fluxplain-origin-previous"] = str(newest[topic]).encode()
        newest[topic] = offset
        made.append(Message(config.topic("observations"), 0, offset, None, data, None, headers))
    return made


def announcement(sha256: str, version: str = "v2") -> dict[str, Any]:
    return {"model": {"version": version, "sha256": sha256}}


def taken(config: Config, values: list[Any]) -> list[Record]:
    pipeline, log = LocalPipeline(config), messages(config, values)
    return [record for i, each in enumerate(log) for record in pipeline.take(each, log[i + 1 :])]
