"""Decoding a worker's messages while the registry may not answer."""

import asyncio
import logging
import time
from collections.abc import Callable

from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.registry.codec import Decoder
from fluxplain.stages import Message

log = logging.getLogger("fluxplain.worker")

ASK_AGAIN_S = 1.0
"""Seconds before a registry that did not answer is asked again."""

LONGEST_WAIT_S = 600.0
"""Longest wait of a worker, in seconds; then it ends, and its next start waits. A group drops a
consumer that has not polled for 1,000 s."""


class WaitingDecoder:
    """Decodes a worker's messages; `waits_for` is the registry's error while one waits."""

    def __init__(self, decoder: Decoder | None, replica: Replica) -> None:
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
