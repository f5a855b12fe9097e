"""The messages of dead letters, sent again while the pipeline runs: results like any other's."""

from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.kafka.producer import DeliveryError, RecordProducer
from fluxplain.kafka.requeue.originals import Original
from fluxplain.kafka.requeue.planner import Again
from fluxplain.kafka.requeue.sender import Transactions
from fluxplain.kafka.topics.topic_reader import read_to_end
from fluxplain.schemas import DeadLetter
from fluxplain.stages import Message
from tests.kit.kafka_pipeline import (
    JOINED,
    KafkaPipeline,
    Start,
    assert_same,
    reference,
    reference_of,
)
from tests.kit.streams import observations

GOOD = observations(60)

HEADER = "fluxplain-requeued-from"


def without_age(**more: Any) -> bytes:
    """An observation that lacks a value, before there is one to impute."""
    fields = orjson.loads(GOOD[0])
    return orjson.dumps({"x": {**fields["x"], "age": None}, "y": fields["y"]} | more)


@pytest.fixture
def tables() -> dict[str, Any]:
    return {"missing": {"policy": "impute"}}


def bury(pipeline: KafkaPipeline, first: bytes) -> None:
    """Send an observation that becomes a dead letter, and then those that mend the cause."""
    pipeline.send([first])
    pipeline.wait_until(lambda: pipeline.counts()["dead-letters"] == 1)
    pipeline.process(GOOD)


def requeue(pipeline: KafkaPipeline) -> str:
    result = pipeline.run("dead-letters", "requeue", "--yes")
    assert result.returncode == 0, result
    return result.stdout


@pytest.mark.both
def test_a_copy_has_a_seq_and_a_result_of_its_own(start: Start) -> None:
    first = without_age()
    with start() as pipeline:
        bury(pipeline, first)
        assert "Sent 1 message." in requeue(pipeline)
        # not until all is committed: the mark of a transaction stays behind the last message
        expected = reference(pipeline.config, [first, *GOOD, first])
        pipeline.wait_until(lambda: expected.keys() <= pipeline.published.keys())
        assert "it was sent again before" in requeue(pipeline)
    assert_same(pipeline.published, expected)
    predictions = pipeline.records("predictions")
    assert [each["seq"] for each in predictions] == [*range(1, len(GOOD) + 2)]


class TestJoined:
    """Where labels have their own topic."""

    @pytest.fixture
    def tables(self) -> dict[str, Any]:
        label = {"type": "integer", "topic": True, "wait": 100}
        return {"missing": {"policy": "impute"}, "label": label}

    @pytest.mark.both
    def test_a_copy_gets_the_label_that_waited_for_it(self, start: Start) -> None:
        with start(roles=JOINED) as pipeline:
            bury(pipeline, without_age(id="a", y=None))
            pipeline.send([b'{"id": "a", "y": 1}'], topic="labels")
            pipeline.wait_until_idle()
            assert "Sent 1 message." in requeue(pipeline)
            pipeline.wait_until(lambda: self.copies(pipeline) != [])
            expected = reference_of(pipeline.config, pipeline.joined(0))
            pipeline.wait_until(lambda: expected.keys() <= pipeline.published.keys())
        assert_same(pipeline.published, expected)
        [copy] = self.copies(pipeline)
        assert copy["y"] == 1

    def copies(self, pipeline: KafkaPipeline) -> list[dict[str, Any]]:
        return [each for each in pipeline.records("predictions") if each["id"] == "a"]


def again(config: Config) -> Again:
    """The message of a dead letter, which is published too."""
    producer, topic = RecordProducer(config), config.topic("features")
    producer.send(topic, GOOD[0], partition=0)
    letter = Message(topic, 0, 0, None, GOOD[0]).dead_letter("the model failed")
    producer.send(config.topic(DeadLetter.TOPIC), letter.encode(), partition=0)
    producer.flush()
    return Again((topic, 0, 0), Original(None, GOOD[0], {}))


def copies(config: Config) -> int:
    return sum(HEADER in dict(m.headers() or ()) for m in read_to_end(config, "features"))


@pytest.mark.kafka
def test_a_second_run_stops_the_first(config: Config) -> None:
    message, first = again(config), Transactions(config)
    second = Transactions(config)
    with pytest.raises(DeliveryError, match="another `fluxplain dead-letters requeue` has begun"):
        first.send([message])
    second.send([message])
    assert copies(config) == 1


@pytest.mark.kafka
def test_a_run_that_died_before_its_end_has_sent_nothing(start: Start, config: Config) -> None:
    message, dead = again(config), Transactions(config)
    dead._producer.begin_transaction()
    dead.produce(message)
    dead._producer.flush()
    with start(roles=()) as pipeline:
        assert "Sent 1 message." in requeue(pipeline)
    assert copies(config) == 1
