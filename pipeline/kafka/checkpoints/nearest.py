"""Finds the checkpoint from which a replay to an observation is shortest."""

from typing import NamedTuple

from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointStore, Slot
from fluxplain.kafka.checkpoints.envelope import DamagedError, RefusedError


class Nearest(NamedTuple):
    """The nearest usable checkpoint, and the reasons against nearer ones, the nearest first."""

    checkpoint: Checkpoint | None
    refusals: list[str]


def nearest(store: CheckpointStore, slot: Slot, through: int, incarnation: str) -> Nearest:
    """Return the newest checkpoint of an incarnation at or below the offset ``through``."""
    refusals: list[str] = []
    for name, open_it, offset in store.candidates(slot):
        if offset is not None and offset > through:
            continue
        try:
            found = open_it()
        except (DamagedError, RefusedError) as error:
            refusals.append(f"the checkpoint {name} is not used: {error}")
            continue
        own = found.life.incarnation
        if found.next_offset <= through and own == incarnation:
            return Nearest(found, refusals)
        if own != incarnation:
            refusals.append(f"the checkpoint {name} is not used: its incarnation is {own!r}")
    return Nearest(None, refusals)
