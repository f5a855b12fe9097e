"""Reasons for single outputs: the same after a crash, and by a replay of the log."""

from pathlib import Path
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.checkpoints.nearest import nearest
from fluxplain.kafka.client import cluster
from fluxplain.kafka.topics.partition_log import PartitionLog
from fluxplain.local import replayed_reasons
from fluxplain.schemas import Reasons
from tests.behaviour.late_labels import Delays, late_labels
from tests.behaviour.test_late_labels import send
from tests.kit.kafka_pipeline import JOINED, Start
from tests.kit.settings import SETTINGS, Configure
from tests.kit.streams import observations
from tests.kit.support import agrawal


def assert_equal(again: Reasons, published: dict[str, Any]) -> None:
    """Fail unless reasons are the same; but for their place among the published ones."""
    for name, value in published.items():
        assert name in {"previous_seq", "skipped"} or getattr(again, name) == value, name


def replayed(config: Config, folder: Path, seq: int) -> tuple[int, list[Reasons]]:
    """Return the offset of the nearest checkpoint, and the reasons by a replay from there."""
    kept = config.checkpoint.model_copy(update={"directory": folder})
    config = config.model_copy(update={"checkpoint": kept})
    slot = Slot("model", config.topic(config.source), 0)
    start, refusals = nearest(open_store(config, cluster(config)), slot, seq, "1")
    assert not refusals
    begin = 0 if start is None else start.next_offset
    with PartitionLog(config, config.source, 0, begin) as log:
        return begin, replayed_reasons(config, 0, seq, log, start).reasons


def test_a_replay_of_the_log_gives_the_reasons_that_were_published(start: Start) -> None:
    with start() as pipeline:
        values = observations(300)
        pipeline.feed_killing(values, {120: "model-1", 200: "model-1"})
        pipeline.finish(values)
        published = pipeline.records("reasons")
        last = published[-1]
        config = pipeline.config
        with PartitionLog(config, config.source, 0) as log:
            assert log.first == 0
            [again] = replayed_reasons(config, 0, last["seq"], log).reasons
    assert 0.15 < len(published) / 280 < 0.45, SETTINGS["reasons"]
    assert_equal(again, last)


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_replay_from_kept_checkpoints_does_too(
    start: Start, configure: Configure, *, is_joined: bool
) -> None:
    configure(label={"type": "integer", "topic": is_joined, "wait": 150})
    begins = set()
    with start(**({"roles": JOINED} if is_joined else {})) as pipeline:
        if is_joined:
            for begin, each in enumerate(batches(400, 100)):
                send(pipeline, each)
                pipeline.wait_until_idle()
                if begin in {1, 2}:
                    pipeline.kill("join")
                    pipeline.kill("model")
            pipeline.finish_joined()
        else:
            values = observations(400)
            pipeline.feed_killing(values, {120: "model-1", 260: "model-1"})
            pipeline.finish(values)
        for published in pipeline.records("reasons")[::9]:
            begin, [again] = replayed(pipeline.config, pipeline.checkpoints, published["seq"])
            begins.add(begin)
            assert_equal(again, published)
    assert len(begins) > 3, "of different checkpoints"


def batches(n: int, size: int) -> list[list[Any]]:
    """Return observations with late labels, in batches."""
    records = list(late_labels(agrawal(n), Delays(most=100, missing=0.05, repeated=0.05)))
    return [records[i : i + size] for i in range(0, len(records), size)]
