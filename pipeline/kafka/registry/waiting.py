"""For workers: messages in the wire format are opened, and a registry that is away, waited for."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.kafka.client import BrokerError
from pipeline.parts import Part
from pipeline.stages import Message
from pipeline.stages.announced import NotYetError

if TYPE_CHECKING:
    from pipeline.kafka.registry.decoder import Decoder

log = logging.getLogger("fluxplain.worker")

ASK_AGAIN_S = 1.0
"""How long to wait before a registry that did not answer is asked again."""

LONGEST_WAIT_S = 600.0
"""How long to wait in all; then the next start waits. Kafka's client puts out of its group who has
taken nothing for 1,000 s."""


class WaitingDecoder:
    """Opens the messages of a worker.

    Parameters
    ----------
    decoder
        None if no message is to be opened.
    part
        Whose messages they are, for the log.

    Attributes
    ----------
    waits_for
        Why the registry does not answer; None unless a message waits for it.
    """

    def __init__(self, decoder: "Decoder | None", part: Part) -> None:
        self._decoder = decoder
        self._part = part
        self.waits_for: str | None = None

    async def opened(
        self, message: Message, *, holds: Callable[[], bool], waits: Callable[[], None]
    ) -> Message | None:
        """Return a message that can be read, or with why it cannot; None if it is not wanted.

        A registry that does not answer is waited for: what it does not tell is no fault of the
        message.

        Parameters
        ----------
        message
            As it was read.
        holds
            Tells whether the message is still this worker's.
        waits
            Called when the waiting begins.

        Raises
        ------
        NotYetError
            If the registry has not answered for :data:`LONGEST_WAIT_S`.
        """
        if self._decoder is None or message.flaw is not None:
            return message
        if self._decoder.is_known(message):
            return self._decoder.opened(message)
        # in a thread: the loop must go on to hear of rebalances and signals
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
                log.warning("%s: no longer waiting for the schema registry", self._part)
            self.waits_for = None

    async def _wait(self, error: BrokerError, waited_s: float, waits: Callable[[], None]) -> None:
        if self.waits_for is None:
            log.warning("%s: %s: waiting for it", self._part, error)
            waits()
        self.waits_for = str(error)
        if waited_s >= LONGEST_WAIT_S:
            raise NotYetError(str(error))
        await asyncio.sleep(ASK_AGAIN_S)
