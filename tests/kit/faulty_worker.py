"""A worker with a fault in it, as a process of its own.

Usage: ``python -m tests.kit.faulty_worker CONFIG FAULT [ROLE]``
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from fluxplain.agents import factory
from fluxplain.config import load_config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.checkpoints import Envelope, State
from fluxplain.kafka.faust.app import run
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.worker.commit import Committer
from fluxplain.kafka.worker.outbox import Outbox, Publisher
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.kafka.worker.turn import Turn
from fluxplain.kafka.worker.worker import RoleWorker
from fluxplain.schemas import Change, Record
from fluxplain.stages import ModelStage

AT_SEQ = 60
"""Where the fault shows: after explanations have begun."""

AT_CHECKPOINT = 2
"""Which checkpoint of a worker is its last: one is whole, so that there is something to go on."""


def die(*_args: Any, **_kwargs: Any) -> None:
    """Die as by a crash."""
    os.kill(os.getpid(), signal.SIGKILL)


def dies(owner: Any, name: str, *, after: bool = False) -> None:
    """Make a step of the commit protocol die before or after what it does, the second time."""
    sound: Callable[..., Any] = getattr(owner, name)
    calls = 0

    async def faulty(committer: Committer, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += any(p.next_offset > p.committed_offset for p in committer.assignment)
        last = calls == AT_CHECKPOINT
        if last and not after:
            die()
        result = await sound(committer, *args, **kwargs)
        if last:
            die()
        return result

    setattr(owner, name, faulty)


def dies_while_saving() -> None:
    """Die when the second checkpoint is half written."""
    sound_seal, seals = Envelope.seal, 0

    def seal(self: Envelope, *args: Any) -> tuple[bytes, State]:
        nonlocal seals
        seals += 1
        return sound_seal(self, *args)

    sound_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        if seals == AT_CHECKPOINT:
            os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()
        sound_fsync(descriptor)

    sound_send = RecordProducer.send

    def send(
        self: RecordProducer, topic: str, value: bytes, key: Any = None, *rest: Any, **more: Any
    ) -> None:
        if seals == AT_CHECKPOINT and key and key.endswith(b"/header"):
            self.flush()
            die()
        sound_send(self, topic, value, key, *rest, **more)

    Envelope.seal = seal  # type: ignore[method-assign,assignment]
    os.fsync = fsync  # type: ignore[assignment]
    RecordProducer.send = send  # type: ignore[method-assign,assignment]


sound_step = ModelStage.step


def raising_step(stage: ModelStage, sample: Any) -> Sequence[Record]:
    """Fail in a way that is no record's fault."""
    if sample.seq == AT_SEQ:
        raise RuntimeError("a fault of the stage")
    return sound_step(stage, sample)


def huge_step(stage: ModelStage, sample: Any) -> Sequence[Record]:
    """Publish a record that no broker takes."""
    records = sound_step(stage, sample)
    if sample.seq == AT_SEQ:
        object.__setattr__(records[0], "id", "x" * 2_000_000)
    return records


def raises() -> None:
    """Raise in the stage."""
    ModelStage.step = raising_step  # type: ignore[method-assign,assignment]


def huge_output() -> None:
    """Publish too much at once."""
    ModelStage.step = huge_step  # type: ignore[method-assign,assignment]


def dies_before_delivery() -> None:
    """Die before the outputs have arrived."""
    Outbox.delivered = die  # type: ignore[method-assign,assignment]


def dies_deciding(*, published: bool) -> None:
    """Die after it was decided about an announced model, or when that was published too."""
    sound = Publisher.publish

    def publish(
        self: Publisher, partition: AssignedPartition, records: Sequence[Record], incoming: Any
    ) -> None:
        is_decision = any(isinstance(each, Change) and each.kind == "model" for each in records)
        if is_decision and not published:
            die()
        sound(self, partition, records, incoming)
        if is_decision:
            self._outbox.send_all()
            self._outbox._producer.flush()
            die()

    Publisher.publish = publish  # type: ignore[method-assign]


def freezes_deciding() -> None:
    """Be stopped, until somebody lets it go on, when a model is about to take over."""
    sound, stopped = Register.decide, False

    def decide(self: Register, *args: Any) -> Any:
        nonlocal stopped
        if not stopped:
            stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(1)  # another thread may take the signal, and stop this one somewhat later
        return sound(self, *args)

    Register.decide = decide  # type: ignore[method-assign,assignment]


def hangs() -> None:
    """Take nothing more after a while, as a consumer that died quietly."""
    sound = RoleWorker._turn

    async def turn(self: RoleWorker, message: Any) -> Turn | None:
        return await sound(self, message) if message.offset < AT_SEQ else None

    RoleWorker._turn = turn  # type: ignore[method-assign]


def drops() -> None:
    """Lose a message on its way, once, as Faust does when a seek comes at the wrong moment."""
    sound, dropped = RoleWorker._turn, False

    async def turn(self: RoleWorker, message: Any) -> Turn | None:
        nonlocal dropped
        if message.offset == AT_SEQ and not dropped:
            dropped = True
            return None
        return await sound(self, message)

    RoleWorker._turn = turn  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "raises": raises,
    "huge-output": huge_output,
    "dies-before-delivery": dies_before_delivery,
    "dies-before-publishing-a-decision": lambda: dies_deciding(published=False),
    "dies-after-publishing-a-decision": lambda: dies_deciding(published=True),
    "freezes-deciding": freezes_deciding,
    "hangs": hangs,
    "drops": drops,
    # each step of the commit protocol
    "dies-before-1": lambda: dies(Committer, "_begin"),
    "dies-between-1-and-2": lambda: dies(Committer, "_save"),
    "dies-within-2": dies_while_saving,
    "dies-between-2-and-3": lambda: dies(Committer, "_commit"),
    "dies-after-3": lambda: dies(Committer, "_finish", after=True),
}


def main(config: str, fault: str, role: str = "model") -> None:
    """Run the worker."""
    FAULTS[fault]()
    replica = Replica(cast(Role, role))
    run(factory(replica.role)(load_config(Path(config), replica.role), replica))


if __name__ == "__main__":
    main(*sys.argv[1:])
