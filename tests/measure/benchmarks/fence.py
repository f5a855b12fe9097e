"""Measures what the fence costs: a header in each message, and a look at it by each reader.

``python -m tests.measure.benchmarks.fence worker --role model --config FILE`` runs a worker without
it.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fluxplain.cli import supervisor
from fluxplain.cli.main import main
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.faust.transport import _Consumer
from fluxplain.kafka.worker.claims import Claims
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.stages import Message
from tests.measure.benchmarks.rig import ALL, full_speed, rig, settings
from tests.measure.benchmarks.timing import Figure, Run

RECORDS = 12_000

STEADY = 4_000
"""Records before the measured ones."""

ROUNDS = 3
"""Pairs of runs; what comes second in one comes first in the next."""


def with_and_without(run: Run) -> Iterator[Figure]:
    """Measure records per second on Kafka, with the fence and without it, in turns.

    Without it no partition is claimed, no message names its writer, and readers take all messages.
    """
    rates: dict[bool, list[float]] = {True: [], False: []}
    for i in range(ROUNDS):
        for fenced in (True, False) if i % 2 == 0 else (False, True):
            run.clock.say(f"{'with' if fenced else 'without'} the fence, {i + 1} of {ROUNDS}")
            rates[fenced].append(_rate(run, fenced=fenced))
    what = "full set, Kafka: records per second, with the fence against without"
    yield Figure.of(what, max(rates[True]), max(rates[False]), bar="at least 0.95")


def _rate(run: Run, *, fenced: bool) -> float:
    command = supervisor.worker_command if fenced else _unfenced
    with (
        patch.object(supervisor, "worker_command", command),
        rig(run, "Kafka", settings(ALL)) as it,
    ):
        return full_speed(it, RECORDS, STEADY)


def _unfenced(replica: Replica, config_path: Path) -> Sequence[str]:
    first, *rest = supervisor.command_of("worker", "--role", replica.role, config_path=config_path)
    return (first, "-m", "tests.measure.benchmarks.fence", *rest[2:])


async def claim(self: Claims, tps: Collection[TopicPartition]) -> None:
    # own the partitions without a claim
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
