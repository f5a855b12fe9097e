"""A command whose workers neither name themselves nor look who wrote a message.

``python -m tests.measure.benchmarks.unfenced worker --role model --config FILE``
"""

from collections.abc import Collection
from typing import Any

from fluxplain.cli.main import main
from fluxplain.kafka.checkpoints import Slot
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.faust.transport import _Consumer
from fluxplain.kafka.worker.claims import Claims
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.stages import Message


async def claim(self: Claims, tps: Collection[TopicPartition]) -> None:
    self._epochs |= {str(Slot.of(self.context.replica, *tp)): 1 for tp in tps}


async def checked(_self: Claims, _partition: AssignedPartition, incoming: Message) -> Message:
    return incoming


async def is_member(_self: Any, _tps: object, _earliest: object) -> bool:
    return True


send = Outbox.send


def send_unnamed(self: Outbox, *record: Any, writer: object = None) -> None:
    send(self, *record)


if __name__ == "__main__":
    Claims.claim = claim  # type: ignore[method-assign]
    Claims.checked = checked  # type: ignore[method-assign,assignment]
    _Consumer._is_member = is_member  # type: ignore[method-assign,assignment]
    Outbox.send = send_unnamed  # type: ignore[method-assign,assignment]
    main()
