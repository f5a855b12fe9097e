"""A worker waits for a registry that is away, while the message is its own, and not for ever."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from pipeline.kafka.registry import waiting
from pipeline.kafka.registry.waiting import WaitingDecoder
from pipeline.kafka.registry.wire import framed
from pipeline.parts import Part
from pipeline.stages import Message
from pipeline.stages.announced import NotYetError
from tests.registry import RegistryServer, decoder_of


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    monkeypatch.setattr(waiting, "ASK_AGAIN_S", 0.0)
    with RegistryServer() as running:
        yield running


def message(server: RegistryServer) -> Message:
    return Message("features", 0, 7, None, framed(server.add("a", "{}", "JSON"), b'{"x":{}}'))


class Waits:
    """Is asked whether to go on, and told that waiting begins."""

    def __init__(self, holds: Callable[[], bool] = lambda: True) -> None:
        self.begun = 0
        self.holds = holds

    def __call__(self) -> None:
        self.begun += 1


def opened(decoder: WaitingDecoder, each: Message, waits: Waits) -> Message | None:
    return asyncio.run(decoder.opened(each, holds=waits.holds, waits=waits))


def test_without_a_decoder_a_message_is_as_it_was(server: RegistryServer) -> None:
    each = message(server)
    assert opened(WaitingDecoder(None, Part("join")), each, Waits()) is each


def test_a_registry_that_comes_back_is_asked_again(server: RegistryServer) -> None:
    each, decoder = message(server), WaitingDecoder(decoder_of(server), Part("model"))
    seen: list[str | None] = []

    def holds() -> bool:
        seen.append(decoder.waits_for)
        if len(seen) == 3:
            server.failure = None
        return True

    server.failure = 503, b""
    waits = Waits(holds)
    found = opened(decoder, each, waits)
    assert found is not None
    assert found.fields() == {"x": {}}
    assert seen[0] is None
    assert all("fails" in str(told) for told in seen[1:3])
    assert waits.begun == 1
    assert decoder.waits_for is None


def test_what_is_no_longer_wanted_is_not_waited_for(server: RegistryServer) -> None:
    each, decoder = message(server), WaitingDecoder(decoder_of(server), Part("model"))
    left = [True, True, False]
    server.failure = 503, b""
    assert opened(decoder, each, Waits(lambda: left.pop(0))) is None
    assert not left
    assert decoder.waits_for is None
    server.failure = None
    answers = [True, False]  # taken away while the registry was asked
    assert opened(decoder, each, Waits(lambda: answers.pop(0))) is None


def test_nobody_waits_for_ever(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST_WAIT_S", 0.0)
    server.failure = 503, b""
    decoder = WaitingDecoder(decoder_of(server), Part("model"))
    with pytest.raises(NotYetError, match="fails: Service Unavailable"):
        opened(decoder, message(server), Waits())
