"""Decoding while the registry may not answer: messages wait, and stay in order."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from confluent_kafka import Message as KafkaMessage

from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import BrokerError
from fluxplain.stages import Message

if TYPE_CHECKING:
    from fluxplain.kafka.registry.avro_decoder import Decoder

log = logging.getLogger("fluxplain.worker")
reader_log = logging.getLogger("fluxplain.registry")

ASK_AGAIN_S = 1.0
"""Seconds before a registry that did not answer is asked again."""

LONGEST_WAIT_S = 600.0
"""Longest wait of a worker, in seconds; then it ends, and its next start waits. A group drops a
consumer that has not polled for 1,000 s."""


class WaitingDecoder:
    """Decodes a worker's messages; `waits_for` is the registry's error while one waits."""

    def __init__(self, decoder: "Decoder | None", replica: Replica) -> None:
        self._decoder = decoder
        self._replica = replica
        self.waits_for: str | None = None

    async def opened(
        self, message: Message, *, holds: Callable[[], bool], waits: Callable[[], None]
    ) -> Message | None:
        """Return a message decoded, or with its flaw; None once `holds` returns False.

        Calls `waits` when a wait begins. Raises NotYetError if the registry has not answered for
        :data:`LONGEST_WAIT_S`: the message itself may be fine.
        """
        if self._decoder is None or message.flaw is not None:
            return message
        if self._decoder.is_known(message):
            return self._decoder.opened(message)
        # in a thread: the event loop must handle rebalances and signals
        run, began_at = asyncio.get_running_loop().run_in_executor, time.monotonic()
        try:
            while holds():
                try:
                    opened = await run(None, self._decoder.opened, message)
                except BrokerError as error:
                    await self._wait(error, time.monotonic() - began_at, waits)
                else:
                    return opened if holds() else None
            return None
        finally:
            if self.waits_for is not None:
                log.warning("%s: the schema registry answers again", self._replica)
            self.waits_for = None

    async def _wait(self, error: BrokerError, waited_s: float, waits: Callable[[], None]) -> None:
        if self.waits_for is None:
            log.warning("%s: %s: waiting for it", self._replica, error)
            waits()
        self.waits_for = str(error)
        if waited_s >= LONGEST_WAIT_S:
            raise NotYetError(str(error))
        await asyncio.sleep(ASK_AGAIN_S)


class DisplayDecoder:
    """Decodes messages for display; `trouble` is the registry's error while messages wait."""

    def __init__(self, decoder: "Decoder | None") -> None:
        self._decoder = decoder
        self._waiting: deque[KafkaMessage] = deque()
        self.trouble: BrokerError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no message waits, so that the next may be read."""
        return not self._waiting

    def opened(self, messages: Iterable[KafkaMessage], timeout_s: float) -> list[KafkaMessage]:
        """Return the waiting messages and these, up to the first that must wait.

        If there is none to return, this takes `timeout_s`, like a read without a message.
        """
        if self._decoder is None:
            return list(messages)
        self._waiting.extend(messages)
        done: list[KafkaMessage] = []
        try:
            while self._waiting:
                if not self._waiting[0].error():
                    self._decoder.open_in_place(self._waiting[0])
                done.append(self._waiting.popleft())
            self.trouble = None
        except BrokerError as error:
            if self.trouble is None:
                reader_log.warning("%s: waiting for it", error)
            self.trouble = error
            if not done:
                time.sleep(timeout_s)
        return done
