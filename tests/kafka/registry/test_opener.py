"""While the registry is away, messages wait, in their order."""

import logging

import pytest
from confluent_kafka import Message

from pipeline.kafka.registry.opener import Opener
from pipeline.kafka.registry.wire import framed
from tests.registry import RegistryServer, decoder_of


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


def test_without_a_registry_messages_are_as_they_were() -> None:
    opener = Opener(None)
    message = Message(topic="t", value=framed(1, b"{}"))
    assert opener.opened([message], 0.0) == [message]
    assert message.value() == framed(1, b"{}")
    assert opener.is_empty
    assert opener.trouble is None


def test_while_the_registry_is_away_messages_wait_in_their_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with RegistryServer() as server:
        known, other = server.add("a", "{}", "JSON"), server.add("b", "{ }", "JSON")
        opener = Opener(decoder_of(server))
        first = [Message(topic="t", value=framed(known, b'{"n":0}'))]
        assert values(opener.opened(first, 0.0)) == [b'{"n":0}']
        server.stop()
        ids = [known, other, known]
        more = [
            Message(topic="t", value=framed(id_, b'{"n":%d}' % n)) for n, id_ in enumerate(ids, 1)
        ]
        with caplog.at_level(logging.WARNING):
            assert values(opener.opened(more, 0.0)) == [b'{"n":1}'], "what is known goes on"
            for _ in range(3):
                assert not opener.opened([], 0.0)
        assert not opener.is_empty
        assert "does not answer" in str(opener.trouble)
        assert len(caplog.records) == 1, "said once"
        server.start_again()
        last = [Message(topic="t", value=framed(other, b'{"n":4}'))]
        assert values(opener.opened(last, 0.0)) == [b'{"n":2}', b'{"n":3}', b'{"n":4}']
        assert opener.is_empty
        assert opener.trouble is None
