"""A registry that is away: a worker waits while the message is its own, and so do readers."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Message as KafkaMessage

from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.registry import registry_wait
from fluxplain.kafka.registry.codec import Decoder, framed
from fluxplain.kafka.registry.registry_wait import WaitingDecoder
from fluxplain.kafka.topics.topic_reader import DecodedMessages
from fluxplain.stages import Message
from tests.kit.registry import RegistryServer, decoder_of
from tests.kit.support import make_config


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_wait, "ASK_AGAIN_S", 0.0)


class Reading:
    """Stands in for a consumer."""

    def __init__(self, messages: list[KafkaMessage]) -> None:
        self.messages = messages

    def consume(self, limit: int, _timeout_s: float) -> list[KafkaMessage]:
        read, self.messages = self.messages[:limit], self.messages[limit:]
        return read


class Worker:
    """Decodes one message, and counts how often it is told that waiting begins."""

    def __init__(self, server: RegistryServer, decoder: Decoder | None) -> None:
        self.message = Message("features", 0, 7, None, framed(server.add("a", "{}", "JSON"), b"{}"))
        self.decoder = WaitingDecoder(decoder, Replica("model"))
        self.begun = 0

    def opened(self, holds: Callable[[], bool] = lambda: True) -> Message | None:
        def waits() -> None:
            self.begun += 1

        return asyncio.run(self.decoder.opened(self.message, holds=holds, waits=waits))


@pytest.fixture
def worker(server: RegistryServer) -> Iterator[Worker]:
    worker = Worker(server, decoder_of(server))
    server.failure = 503, b""
    yield worker
    assert worker.decoder.waits_for is None


def test_without_a_registry_messages_stay_as_they_are(server: RegistryServer) -> None:
    worker = Worker(server, None)
    assert worker.opened() is worker.message
    message = KafkaMessage(topic="t", value=framed(1, b"{}"))
    messages = DecodedMessages(make_config(), cast(Consumer, Reading([message])))
    assert messages.take(1, 0.0) == [message]
    assert message.value() == framed(1, b"{}")
    assert messages.trouble is None


def test_a_registry_that_comes_back_is_asked_again(server: RegistryServer, worker: Worker) -> None:
    seen: list[str | None] = []

    def holds() -> bool:
        seen.append(worker.decoder.waits_for)
        if len(seen) == 3:
            server.failure = None
        return True

    found = worker.opened(holds)
    assert found is not None
    assert found.fields() == {}
    assert seen[0] is None
    assert all("fails" in str(reason) for reason in seen[1:3])
    assert worker.begun == 1


def test_a_message_that_was_revoked_is_not_waited_for(
    server: RegistryServer, worker: Worker
) -> None:
    left = [True, True, False]
    assert worker.opened(lambda: left.pop(0)) is None
    assert not left
    server.failure = None
    answers = [True, False]  # revoked while the registry was asked
    assert worker.opened(lambda: answers.pop(0)) is None


def test_no_worker_waits_for_ever(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_wait, "LONGEST_WAIT_S", 0.0)
    with pytest.raises(NotYetError, match="fails: Service Unavailable"):
        worker.opened()


def test_while_the_registry_is_away_what_is_read_waits_in_its_order(
    server: RegistryServer, caplog: pytest.LogCaptureFixture
) -> None:
    known, other = server.add("a", "{}", "JSON"), server.add("b", "{ }", "JSON")
    reading = Reading([])
    config = make_config(registry={"url": server.url})
    messages = DecodedMessages(config, cast(Consumer, reading))

    def taken(*sent: tuple[int, int]) -> list[bytes | None]:
        reading.messages += [
            KafkaMessage(topic="t", value=framed(id_, b"%d" % n)) for id_, n in sent
        ]
        return [message.value() for message in messages.take(10, 0.0)]

    assert taken((known, 0)) == [b"0"]
    server.stop()
    with caplog.at_level(logging.WARNING):
        assert taken((known, 1), (other, 2), (known, 3)) == [b"1"], "what is known goes on"
        for _ in range(3):
            assert not taken()
    assert "does not answer" in str(messages.trouble)
    assert len(caplog.records) == 1, "said once"
    server.start_again()
    assert taken((other, 4)) == [b"2", b"3"]
    assert taken() == [b"4"], "nothing was read before the others were taken"
    assert messages.trouble is None
