"""Those who read topics with librdkafka get past what it cannot unpack or decode."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fluxplain.alerts.forward import ChangeConsumer
from fluxplain.config import Config, load_config
from fluxplain.kafka.faust.peek import batch_end, first_offset
from fluxplain.kafka.headers import headers_of
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import Fingerprint, RegisteredError
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.reader import TopicReader, read_to_end
from tests.fuzz.poison import Poison, poisons
from tests.kit.batches import ZSTD, batch, record, send_batches
from tests.measure.chaos.poison import bomb, poison

pytestmark = pytest.mark.kafka

UNPACKED = {"a bomb of zstd", "lz4 with another end"}
"""Kinds that librdkafka stops at."""


@pytest.fixture
def config(bootstrap_servers: str, config_path: Path) -> Config:
    """Settings for the broker, whose topics are there."""
    config = load_config(config_path).on_broker(bootstrap_servers)
    create_topics(config)
    return config


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
