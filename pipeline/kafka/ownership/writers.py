"""Epoch fencing: readers ignore messages of a partition's former owners.

A worker that lost its partition (frozen, or disconnected) may still write queued messages. Each
message that a role reads names its slot and the writer's epoch; a reader ignores epochs below the
newest it has seen. Nothing is lost: an owner begins at a checkpoint below which all outputs had
arrived, and writes everything after it again.

The order makes the epoch safe: a worker claims a partition after its assignment, then lets the
broker confirm its group membership, and only then writes. So a replaced owner has a lower epoch
than its successor, or never writes.
"""

from dataclasses import dataclass, field
from functools import lru_cache

WRITER = "fluxplain-writer"
"""Header with the writer's slot, ``@`` and epoch."""

OWN_TOPICS = ("observations", "evaluations", "explanations")
"""Topics that only workers write and that a role reads: each message in them names its writer."""

MOST_DIGITS = 19
"""Largest number of digits of an epoch: Kafka's offsets have 63 bits."""

MOST_BYTES = 600
"""Largest size of the header, in bytes: a topic's name has at most 249 characters."""


@dataclass(frozen=True, slots=True)
class Writer:
    """An owner of a slot (role or shard, topic and partition, as text), by its epoch.

    Examples
    --------
    >>> Writer("model fluxplain.features-0", 17).header
    b'model fluxplain.features-0@17'
    >>> Writer.read(b"model fluxplain.features-0@17").epoch
    17
    """

    slot: str
    epoch: int

    @property
    def header(self) -> bytes:
        """The value of the header."""
        return f"{self.slot}@{self.epoch}".encode()

    @staticmethod
    def read(header: bytes) -> "Writer | None":
        """Return the writer that a header names; None if it names none."""
        return _written(header[:MOST_BYTES])


@lru_cache(maxsize=1_000)
def _written(header: bytes) -> Writer | None:
    slot, _, epoch = header.decode(errors="replace").rpartition("@")
    if not slot or not epoch.isascii() or not epoch.isdecimal() or len(epoch) > MOST_DIGITS:
        return None
    return Writer(slot, int(epoch)) if int(epoch) > 0 else None


@dataclass(slots=True)
class Fence:
    """The newest epoch of each slot that a partition's reader has seen.

    Examples
    --------
    >>> fence = Fence()
    >>> [fence.admits(Writer("model f-0", epoch), least=1) for epoch in (3, 3, 7, 3, 7)]
    [True, True, True, False, True]
    """

    epochs: dict[str, int] = field(default_factory=dict)

    def is_new(self, writer: Writer) -> bool:
        """Return whether neither this epoch nor a higher one was seen."""
        return writer.epoch > self.epochs.get(writer.slot, 0)

    def admits(self, writer: Writer, *, least: int) -> bool:
        """Return whether a writer is the newest known owner of its slot, and remember it.

        Epochs below ``least``, the number of the registered settings, belong to replaced settings.
        """
        newest = self.epochs.get(writer.slot, 0)
        if writer.epoch < max(newest, least):
            return False
        self.epochs[writer.slot] = writer.epoch
        return True


@dataclass(frozen=True, slots=True)
class Begin:
    """The checkpoint that the newest owner of a slot began from; -1 without one.

    A later checkpoint of a former owner, beyond it, is unusable: its outputs may have been ignored,
    although it counts them as delivered.

    Examples
    --------
    >>> begin = Begin(epoch=7, next_offset=110)
    >>> begin.allows(epoch=7, next_offset=250), begin.allows(epoch=5, next_offset=110)
    (True, True)
    >>> begin.allows(epoch=5, next_offset=250)
    False
    """

    epoch: int = 0
    next_offset: int = -1

    def allows(self, *, epoch: int, next_offset: int) -> bool:
        """Return whether a checkpoint is by that owner or a later one, or not beyond the begin."""
        return epoch >= self.epoch or next_offset <= self.next_offset


ANY = Begin()
"""Allows all checkpoints."""
