"""Reasons for single outputs: the same after a crash, and by a replay of the log."""

from fluxplain.kafka.topics.partition_log import PartitionLog
from fluxplain.local import replayed_reasons
from tests.kit.kafka_pipeline import Start
from tests.kit.settings import SETTINGS
from tests.kit.streams import observations


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
    others = {"previous_seq", "skipped"}
    for name, value in last.items():
        assert name in others or getattr(again, name) == value
