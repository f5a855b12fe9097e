"""Batches that stop Kafka's usual clients: a dead letter by offset, and everyone reads on."""

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from fluxplain.alerts.forward import ChangeConsumer
from fluxplain.config import Config
from fluxplain.kafka.faust.peek import batch_end, first_offset
from fluxplain.kafka.headers import NOT_OURS, headers_of
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint, RegisteredError
from fluxplain.kafka.topics.topic_reader import TopicReader, read_to_end
from tests.fuzz.poison import Poison, poisons
from tests.kit.batches import ZSTD, batch, record, send_batches
from tests.kit.kafka_pipeline import JOINED, Start, assert_same, reference_of
from tests.kit.poisoned import Feeder, feed_joined, joined_problems, letters, peaks, wrong_letters
from tests.kit.streams import observations
from tests.measure.chaos.poison import bomb, poison

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


UNPACKED = {"a bomb of zstd", "lz4 with another end"}
"""Kinds that librdkafka stops at."""


def fill(config: Config, topic: str) -> list[tuple[int, bytes | None]]:
    """Put every kind of poison into a topic; return what can be read, with its offset."""
    servers, name = config.kafka.bootstrap_servers, config.topic(topic)
    readable: list[tuple[int, bytes | None]] = []
    many = [record(i, b"0" * 1_000_000) for i in range(150)]
    made: list[tuple[str, Poison]] = [(kind, make(b"{}")) for kind, make in poisons().items()]
    more = batch(many, ZSTD)
    made.append(("a bomb of zstd", Poison(more, [None] * 150, ["large"] * 150)))
    made.append(("the end", Poison(batch([record(0, b"end")]), [b"end"], [None])))
    offsets = send_batches(servers, name, [each.batch for _, each in made])
    for (kind, each), offset in zip(made, offsets, strict=True):
        assert isinstance(offset, int), f"{kind}: {offset}"
        if kind in UNPACKED:
            continue
        readable += [(offset + i, v) for i, v in enumerate(each.values) if not each.reasons[i]]
    return readable


def test_a_reader_reads_all_that_can_be_read(config: Config) -> None:
    expected = fill(config, "predictions")
    messages = [m for m in read_to_end(config, "predictions") if m.partition() == 0]
    found = {message.offset(): message.value() for message in messages}
    assert {offset: found[offset] for offset, _ in expected} == dict(expected)
    for message in messages:
        assert headers_of(message) == headers_of(message), "it is safe to ask twice"


def test_a_reader_of_what_is_new_gets_past_too(config: Config) -> None:
    with TopicReader(config, ["dead-letters"], from_beginning=True, newest=500) as reader:
        assert reader.poll(0.5) == []
        fill(config, "dead-letters")
        seen: list[bytes | None] = []
        for _ in range(300):
            seen += [message.value() for message in reader.poll(0.5)]
            if b"end" in seen:
                break
        assert seen[-1] == b"end"


def test_alerts_get_past_it_and_go_on(config: Config) -> None:
    with closing(ChangeConsumer(config)) as changes:
        while not changes._consumer.assignment():
            assert changes.poll(0.5) is None
        fill(config, "changes")
        for _ in range(400):
            message = changes.poll(0.5)
            if message is not None:
                changes.done(message, at_once=False)
                if message.value() == b"end":
                    return
    raise AssertionError("the last message did not come")


def test_the_register_is_read_whatever_stands_in_it(config: Config) -> None:
    here = Fingerprint({"seed": "1"}, {"river": "1"})
    register = Register(config)
    number = register.enter(here)
    rng = random.Random(5)
    forged = [
        b'{"kind":"settings","replaces":%d,"settings":[],"versions":{},"logs":{}}' % number,
        b'{"kind":"settings","replaces":%d,"settings":{"seed":1},"versions":{},"logs":{}}' % number,
        b'{"kind":"owner","slot":{}}',
        b'{"kind":"cold-start","place":1,"offset":"x"}',
        b"[" * 100_000,
    ]
    made = [
        *(batch([record(0, value, key=b"k")]) for value in forged),
        *(poison(rng, keyed=True) for _ in range(30)),
        *(bomb(rng) for _ in range(4)),
    ]
    name = config.topic("register")
    answers = send_batches(config.kafka.bootstrap_servers, name, made)
    assert all(isinstance(each, int) for each in answers), answers
    for each in (register, Register(config)):
        assert each.enter(here) == number
        epochs = each.claim(["model t-0"])
        assert each.read().epochs["model t-0"] == epochs["model t-0"]
        with pytest.raises(RegisteredError, match="they differ in seed"):
            each.enter(Fingerprint({"seed": "2"}, {"river": "1"}))


@pytest.mark.parametrize("ask", [first_offset, batch_end])
def test_looking_at_the_log_needs_no_unpacking(
    config: Config, ask: Callable[[Config, str, int, int, float], int | None]
) -> None:
    servers, topic = config.kafka.bootstrap_servers, config.topic("features")
    bomb = poisons()["a bomb of gzip"](b"")
    [start] = send_batches(servers, topic, [bomb.batch])
    assert isinstance(start, int)
    end = start + bomb.batch.count
    found, behind = (start, None) if ask is first_offset else (end, end + 1)
    assert ask(config, topic, 0, start, 10.0) == found
    assert ask(config, topic, 0, end, 10.0) == behind
