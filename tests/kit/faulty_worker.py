"""A worker with a fault in it, as a process of its own.

Usage: ``python -m tests.kit.faulty_worker CONFIG FAULT [ROLE]``
"""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, cast

from fluxplain.agents import create_agent
from fluxplain.config import load_config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.checkpoints.envelope import Envelope
from fluxplain.kafka.faust.app import run
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.worker.commit import Committer
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.worker import RoleWorker, Turn
from fluxplain.schemas import Change, Record
from fluxplain.stages import ModelStage

AT_SEQ = 60
"""Where the fault shows: after explanations have begun."""

AT_CHECKPOINT = 2
"""Which checkpoint of a worker is its last: one is whole, so that there is something to go on."""

Sound = Callable[..., Any]
"""The method that a faulty one replaces, which is given it behind its `self`."""

seen: Counter[str] = Counter()


def die(*_args: Any, **_kwargs: Any) -> None:
    """Die as by a crash."""
    os.kill(os.getpid(), signal.SIGKILL)


def is_last_commit(committer: Committer) -> bool:
    partitions = committer.context.assignment
    seen["commits"] += any(p.next_offset > p.committed_offset for p in partitions)
    return seen["commits"] == AT_CHECKPOINT


async def dies_before(committer: Committer, sound: Sound, *args: Any, **kwargs: Any) -> Any:
    """Die before a step of the commit protocol, the second time."""
    if is_last_commit(committer):
        die()
    return await sound(committer, *args, **kwargs)


async def dies_after(committer: Committer, sound: Sound, *args: Any, **kwargs: Any) -> Any:
    """Die after a step of the commit protocol, the second time."""
    is_last = is_last_commit(committer)
    result = await sound(committer, *args, **kwargs)
    if is_last:
        die()
    return result


def counts(envelope: Envelope, sound: Sound, *args: Any) -> Any:
    seen["seals"] += 1
    return sound(envelope, *args)


def dies_in_file(sound: Sound, descriptor: int) -> None:
    """Die when the second checkpoint is half written to a file."""
    if seen["seals"] == AT_CHECKPOINT:
        os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
        die()
    sound(descriptor)


def dies_in_topic(
    producer: RecordProducer,
    sound: Sound,
    topic: str,
    value: bytes,
    key: Any = None,
    *rest: Any,
    **more: Any,
) -> None:
    """Die when the second checkpoint is half written to the topic."""
    if seen["seals"] == AT_CHECKPOINT and key and key.endswith(b"/header"):
        producer.flush()
        die()
    sound(producer, topic, value, key, *rest, **more)


def raises(stage: ModelStage, sound: Sound, sample: Any) -> Sequence[Record]:
    """Fail in a way that is no record's fault."""
    if sample.seq == AT_SEQ:
        raise RuntimeError("a fault of the stage")
    return cast(Sequence[Record], sound(stage, sample))


def publishes_too_much(stage: ModelStage, sound: Sound, sample: Any) -> Sequence[Record]:
    """Publish a record that no broker takes."""
    records = cast(Sequence[Record], sound(stage, sample))
    if sample.seq == AT_SEQ:
        object.__setattr__(records[0], "id", "x" * 2_000_000)
    return records


def dies_deciding(
    outbox: Outbox, sound: Sound, partition: Any, records: Sequence[Record], incoming: Any
) -> None:
    """Die when it was decided about an announced model."""
    if any(isinstance(each, Change) and each.kind == "model" for each in records):
        die()
    sound(outbox, partition, records, incoming)


def dies_having_decided(
    outbox: Outbox, sound: Sound, partition: Any, records: Sequence[Record], incoming: Any
) -> None:
    """Die when that was published too."""
    sound(outbox, partition, records, incoming)
    if any(isinstance(each, Change) and each.kind == "model" for each in records):
        outbox.send_all()
        cast(RecordProducer, outbox._producer).flush()
        die()


def dies_having_told_of_an_upgrade(
    outbox: Outbox, sound: Sound, record: Record, *rest: Any, **more: Any
) -> None:
    """Die when the notice of other versions was published, before the state is saved."""
    sound(outbox, record, *rest, **more)
    if isinstance(record, Change) and record.kind == "upgrade":
        outbox.send_all()
        cast(RecordProducer, outbox._producer).flush()
        die()


def freezes(register: Register, sound: Sound, *args: Any) -> Any:
    """Be stopped, until somebody lets it go on, when a model is about to take over."""
    seen["decisions"] += 1
    if seen["decisions"] == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)  # another thread may take the signal, and stop this one somewhat later
    return sound(register, *args)


async def hangs(worker: RoleWorker, sound: Sound, message: Any) -> Turn | None:
    """Take nothing more after a while, as a consumer that died quietly."""
    return await sound(worker, message) if message.offset < AT_SEQ else None


async def drops(worker: RoleWorker, sound: Sound, message: Any) -> Turn | None:
    """Lose a message on its way, once, as Faust does when a seek comes at the wrong moment."""
    seen["drops"] += message.offset == AT_SEQ
    is_first = message.offset == AT_SEQ and seen["drops"] == 1
    return None if is_first else await sound(worker, message)


FAULTS: dict[str, Sequence[tuple[Any, str, Sound]]] = {
    "none": [],
    "raises": [(ModelStage, "step", raises)],
    "huge-output": [(ModelStage, "step", publishes_too_much)],
    "dies-before-delivery": [(Outbox, "delivered", die)],
    "dies-before-publishing-a-decision": [(Outbox, "publish", dies_deciding)],
    "dies-after-publishing-a-decision": [(Outbox, "publish", dies_having_decided)],
    "dies-having-told-of-an-upgrade": [(Outbox, "send", dies_having_told_of_an_upgrade)],
    "freezes-deciding": [(Register, "decide", freezes)],
    "hangs": [(RoleWorker, "_turn", hangs)],
    "drops": [(RoleWorker, "_turn", drops)],
    # each step of the commit protocol
    "dies-before-1": [(Committer, "_begin", dies_before)],
    "dies-between-1-and-2": [(Committer, "_save", dies_before)],
    "dies-within-2": [
        (Envelope, "seal", counts),
        (os, "fsync", dies_in_file),
        (RecordProducer, "send", dies_in_topic),
    ],
    "dies-between-2-and-3": [(Committer, "_commit", dies_before)],
    "dies-after-3": [(Committer, "_finish", dies_after)],
}
"""Name → the class or module, its function, and what replaces that."""


def main(config: str, fault: str, role: str = "model") -> None:
    for owner, name, faulty in FAULTS[fault]:
        wrapper = partialmethod if isinstance(owner, type) else partial
        setattr(owner, name, wrapper(faulty, getattr(owner, name)))
    replica = Replica(cast(Role, role))
    run(create_agent(load_config(Path(config), replica.role), replica))


if __name__ == "__main__":
    main(*sys.argv[1:])
