"""For those who read topics as people do: messages in the wire format come as plain JSON."""

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from confluent_kafka import Message

from pipeline.kafka.client import BrokerError

if TYPE_CHECKING:
    from pipeline.kafka.registry.decoder import Decoder

log = logging.getLogger("fluxplain.registry")


class Opener:
    """Opens messages in their order; while the registry does not answer, they wait.

    Parameters
    ----------
    decoder
        None without a registry: then all messages stay as they are.

    Attributes
    ----------
    trouble
        Why messages wait; None if none does.
    """

    def __init__(self, decoder: "Decoder | None") -> None:
        self._decoder = decoder
        self._waiting: deque[Message] = deque()
        self.trouble: BrokerError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no message waits, so that the next may be read."""
        return not self._waiting

    def opened(self, messages: Iterable[Message], timeout_s: float) -> list[Message]:
        """Return the messages that waited and these, as far as the registry knows or answers.

        If it does not answer, this takes as long as reading without a message.
        """
        if self._decoder is None:
            return list(messages)
        self._waiting.extend(messages)
        done: list[Message] = []
        try:
            while self._waiting:
                if not self._waiting[0].error():
                    self._decoder.open_in_place(self._waiting[0])
                done.append(self._waiting.popleft())
            self.trouble = None
        except BrokerError as error:
            if self.trouble is None:
                log.warning("%s: waiting for it", error)
            self.trouble = error
            if not done:
                time.sleep(timeout_s)
        return done
