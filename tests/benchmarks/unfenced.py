"""A command whose workers neither name themselves nor look who wrote a message.

``python -m tests.benchmarks.unfenced worker --role model --config FILE``
"""

from collections.abc import Collection
from typing import Any

from faust.types import TP

from pipeline.cli.main import main
from pipeline.kafka.checkpoints import Slot
from pipeline.kafka.outbox import Outbox
from pipeline.kafka.transport import _Consumer
from pipeline.kafka.worker import Partition, RoleWorker
from pipeline.stages import Message


async def claim(self: RoleWorker, tps: Collection[TP]) -> None:
    """Own the partitions without a claim."""
    self._epochs |= {str(Slot.of(self.part, tp.topic, tp.partition)): 1 for tp in tps}


async def of_its_owner(_self: RoleWorker, _partition: Partition, incoming: Message) -> Message:
    """Believe everybody."""
    return incoming


async def is_member(_self: Any, _tps: object, _earliest: object) -> bool:
    """Ask nobody."""
    return True


send = Outbox.send


def send_unnamed(self: Outbox, *record: Any, writer: object = None) -> None:
    """Send a record without its writer."""
    send(self, *record)


if __name__ == "__main__":
    RoleWorker.claim = claim  # type: ignore[method-assign]
    RoleWorker._of_its_owner = of_its_owner  # type: ignore[method-assign,assignment]
    _Consumer._is_member = is_member  # type: ignore[method-assign,assignment]
    Outbox.send = send_unnamed  # type: ignore[method-assign,assignment]
    main()
