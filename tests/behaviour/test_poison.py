"""Batches that stop Kafka's usual clients: a dead letter by offset, and every role goes on."""

from typing import Any

import pytest

from fluxplain.kafka.worker.claims import NOT_OURS
from tests.kit.kafka_pipeline import JOINED, Start, assert_same, reference_of
from tests.kit.poisoned import (
    Feeder,
    feed_joined,
    joined_problems,
    letters,
    peaks,
    wrong_letters,
)
from tests.kit.streams import observations

pytestmark = pytest.mark.kafka

MB = 1024 * 1024

MOST_GROWTH_BYTES = 250 * MB
"""Of a worker that meets bombs: two unpacked batches at most, and what is read ahead."""


def test_poison_in_features_is_a_dead_letter_by_its_offset(start: Start) -> None:
    good = observations(240)
    with start() as pipeline:
        features = Feeder(pipeline, "features")
        features.good(*good[:100])
        pipeline.wait_until_idle()
        before = peaks(pipeline)
        for i in range(100, 200, 50):
            features.poison(good[i])
            features.good(*good[i : i + 50])
        features.good(*good[200:])
        pipeline.wait_until_idle(timeout_s=240)
        after = peaks(pipeline)
        assert not pipeline.workers.deaths
    assert_same(pipeline.published, reference_of(pipeline.config, features.messages))
    grown = {name: after[name] - before[name] for name in before}
    assert all(each < MOST_GROWTH_BYTES for each in grown.values()), grown


@pytest.mark.parametrize("topic", ["evaluations", "explanations"])
def test_poison_in_the_pipelines_own_topics_changes_nothing(start: Start, topic: str) -> None:
    good = observations(240)
    with start() as pipeline:
        pipeline.takes_foreign = topic == "explanations"
        features, own = Feeder(pipeline, "features"), Feeder(pipeline, topic)
        for i in range(0, 240, 60):
            features.good(*good[i : i + 60])
            own.poison(b"{}")
        pipeline.wait_until_idle(timeout_s=240)
        reference = reference_of(pipeline.config, features.messages)
        # who reads what is published meets the poison too, and gets past it a little later
        pipeline.wait_until(lambda: len(pipeline.published) >= len(reference) + len(own.messages))
        assert not pipeline.workers.deaths
    expected = {m.offset: m.flaw or NOT_OURS for m in own.messages}
    assert letters(pipeline.published, own.topic).keys() == expected.keys()
    assert not wrong_letters(pipeline.published, own.topic, expected)
    others = {
        key: values
        for key, values in pipeline.published.items()
        if key[0] != "dead-letters" or key[1] != own.topic
    }
    assert_same(others, reference)


class TestJoined:
    """Where topics are joined, in each of them, and in the one that holds all."""

    @pytest.fixture
    def tables(self) -> dict[str, Any]:
        """Topics of labels and announcements."""
        label = {"type": "integer", "topic": True, "wait": 100}
        return {"label": label, "control": {"topic": True}}

    def test_every_role_goes_on(self, start: Start) -> None:
        with start(roles=JOINED) as pipeline:
            inputs = feed_joined(pipeline, observations(120), rounds=2)
            pipeline.wait_until_idle(timeout_s=240)
            assert not pipeline.workers.deaths
            assert not list(joined_problems(pipeline, inputs))

    def test_poison_in_what_is_joined_changes_nothing(self, start: Start) -> None:
        good = observations(80)
        with start(roles=JOINED) as pipeline:
            features, joined = Feeder(pipeline, "features"), Feeder(pipeline, "observations")
            features.good(*good[:40])
            pipeline.wait_until_idle()
            joined.poison(b"[]")
            features.good(*good[40:])
            pipeline.wait_until_idle(timeout_s=240)
            assert not pipeline.workers.deaths
        flaws = {m.offset: m.flaw for m in joined.messages if m.flaw}
        assert not wrong_letters(pipeline.published, joined.topic, flaws)
        assert len(pipeline.published) > 80
        assert pipeline.counts()["predictions"] == 80
