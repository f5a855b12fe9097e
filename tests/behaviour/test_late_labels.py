"""Labels in a topic of their own: joined once, in an order that is kept, whatever crashes."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from fluxplain.cli.supervisor import ROLES
from fluxplain.config.replica import Role
from fluxplain.kafka.client import client_settings
from fluxplain.schemas.prediction import LabelCounts
from tests.behaviour.late_labels import START_MS, Delays, Labelled, Sent, late_labels
from tests.kit.kafka_pipeline import JOINED, KafkaPipeline, Start
from tests.kit.settings import SENSITIVE_DRIFT, SETTINGS, Configure, all_methods
from tests.kit.support import agrawal

WAIT = 150

DELAYS = Delays(most=100, missing=0.05, repeated=0.05)

TREE = {
    "factory": "river.tree:HoeffdingTreeClassifier",
    "params": {"grace_period": 50, "delta": 0.01, "leaf_prediction": "mc", "max_depth": 8},
}


def raised(n: int, at: int) -> Iterator[Labelled]:
    """Yield records of which salaries and some labels change."""
    yield from agrawal(at)
    for x, y in agrawal(n - at, seed=2):
        yield {**x, "salary": 2 * float(x["salary"])}, int(y != (float(x["age"]) < 40))


@pytest.fixture
def tables() -> dict[str, Any]:
    """A topic of labels."""
    return {"label": {"type": "integer", "topic": True, "wait": WAIT}}


def send(pipeline: KafkaPipeline, records: Sequence[Sent]) -> None:
    producer = Producer(client_settings(pipeline.config))
    for each in records:
        topic = pipeline.config.topic(each.topic)
        producer.produce(topic, each.value, partition=0, timestamp=each.timestamp)
    producer.flush()


def kill_after(pipeline: KafkaPipeline, predictions: int, roles: Sequence[Role]) -> None:
    """Kill a worker of each role once more than so many predictions are published."""
    pipeline.wait_until(lambda: pipeline.counts()["predictions"] > predictions)
    for role in roles:
        pipeline.kill(role)


def last_counts(pipeline: KafkaPipeline) -> LabelCounts:
    return LabelCounts(**pipeline.records("predictions")[-1]["labels"])


def test_what_is_published_is_that_of_the_same_order_whatever_is_killed(start: Start) -> None:
    records = list(late_labels(agrawal(400), DELAYS))
    with start(roles=JOINED) as pipeline:
        for begin in range(0, len(records), 150):
            send(pipeline, records[begin : begin + 150])
            if begin in {150, 450}:
                pipeline.wait_until_idle()
                pipeline.kill("join")
                pipeline.kill("model")
        pipeline.finish_joined()
    counts = last_counts(pipeline)
    assert counts.joined + counts.repeated > 300
    assert counts.joined + counts.missing + counts.waiting == 400


def test_what_waits_in_both_topics_is_joined_in_the_order_of_its_time(start: Start) -> None:
    records = list(late_labels(agrawal(400), DELAYS))
    labels = [each for each in records if each.topic == "labels"]
    features = [each for each in records if each.topic == "features"]
    with start(roles=()) as pipeline:
        send(pipeline, labels)
        send(pipeline, features)
        for role in JOINED:
            pipeline.workers.add(role)
        joined = pipeline.finish_joined()
    assert [each.value for each in joined] == [each.value for each in records]
    assert [each.time for each in joined] == [each.timestamp for each in records]
    counts = last_counts(pipeline)
    assert counts.unknown == 0
    assert counts.joined + counts.repeated == len(labels)


def test_reasons_and_contrasts_with_late_labels_are_those_of_the_reference_after_kills(
    start: Start, configure: Configure
) -> None:
    # a copy of the model is compared with it 1,000 questions later: two about each observation
    configure(
        model=TREE,
        explain={
            **SETTINGS["explain"],
            **all_methods(20, 1, 3),
            "methods": ["ipfi", "ishap", "interaction"],
            "emit_every": 20,
        },
        drift={**SENSITIVE_DRIFT, "follow_up": 150},
    )
    with start(roles=()) as pipeline:
        send(pipeline, list(late_labels(raised(1300, at=400), DELAYS)))
        for role in JOINED:
            pipeline.workers.add(role)
        kill_after(pipeline, 700, ("join", "model"))
        kill_after(pipeline, 2100, ROLES)
        pipeline.finish_joined()
    changes = pipeline.records("changes")
    assert {each["kind"] for each in changes} >= {"drift", "input", "output"}
    explained = pipeline.records("explanations")
    for method in ("ipfi", "ishap", "interaction"):
        assert any(each["contrasts"] for each in explained if each["method"] == method)
    assert any(each["interactions"] for each in explained)
    assert pipeline.records("reasons")


@pytest.mark.quick
def test_of_a_topic_that_has_to_wait_nothing_is_dropped(start: Start) -> None:
    labels = [Sent("labels", {"id": str(i), "y": 1}, START_MS + 10_000 + i) for i in range(6_000)]
    features = [Sent("features", {"x": {}}, START_MS + i) for i in range(6_000)]
    with start(roles=()) as pipeline:
        send(pipeline, [*labels, *features])
        pipeline.workers.add("join")
        pipeline.wait_until(lambda: pipeline.committed("join", "features") == len(features))
        pipeline.wait_until(lambda: pipeline.committed("join", "labels") == len(labels))
        joined = pipeline.joined(0)
        assert "reading again" not in pipeline.log
    assert [each.origin[0] for each in joined] == [
        pipeline.config.topic(topic) for topic in ("features", "labels") for _ in range(6_000)
    ]
