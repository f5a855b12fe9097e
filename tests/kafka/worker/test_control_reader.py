"""Of the withdrawals ahead in the log, only those that a role has passed on count."""

from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest
from aiokafka.structs import ConsumerRecord

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.headers import Unreadable
from fluxplain.kafka.ownership.writers import WRITER, Writer
from fluxplain.kafka.worker import model_waits
from fluxplain.kafka.worker.model_waits import ControlReader
from fluxplain.stages.stage import ORIGIN
from tests.kit.support import linear_config

CONFIG = linear_config(control={"topic": True})
TOPIC = CONFIG.topic("observations")
JOIN = Writer(f"join {CONFIG.topic('control')}-0", 7)


def record(offset: int, origin: str, headers: dict[str, bytes] | None) -> Any:
    """Return a record that withdraws a model; with None as headers, they are unreadable."""
    own = {ORIGIN: f"{CONFIG.topic(origin)}-0@{offset}".encode(), **(headers or {})}
    named = tuple(own.items()) if headers is not None else Unreadable("broken")
    value = orjson.dumps({"withdraw": "v2"})
    return ConsumerRecord(TOPIC, 0, offset, 0, 0, None, value, None, -1, len(value), named)


def test_only_workers_of_the_pipeline_withdraw_a_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signed = {WRITER: JOIN.header}
    log = [
        record(10, "control", {}),
        record(11, "control", {WRITER: Writer(JOIN.slot, 8).header}),
        record(12, "control", {WRITER: b"\xff"}),
        record(13, "control", None),
        record(14, "features", signed),
        record(15, "control", signed),
    ]

    def read_on(*place: object) -> int:
        take = cast(Callable[[Any], bool], place[-1])
        assert all(map(take, log))
        return 17

    monkeypatch.setattr(model_waits, "read_on", read_on)
    reader = ControlReader(CONFIG, lambda writer: writer == JOIN)
    records, end = reader.read(TopicPartition(TOPIC, 0), 10)
    assert ([each.offset for each in records], end) == ([15], 17)
