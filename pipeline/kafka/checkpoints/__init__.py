"""Checkpoints: the state of one stage for one partition, with the offset to resume from."""

from fluxplain.kafka.checkpoints.checkpoint import (
    SLOW_S,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Slot,
    Snapshot,
    SnapshotError,
    StageFactory,
    State,
)
from fluxplain.kafka.checkpoints.configured import fingerprint_of, identity_of, open_store, slots
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore, make_private_folder
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.topic import TopicCheckpointStore

__all__ = [
    "SLOW_S",
    "Checkpoint",
    "CheckpointError",
    "CheckpointStore",
    "DirectoryCheckpointStore",
    "Envelope",
    "Identity",
    "Slot",
    "Snapshot",
    "SnapshotError",
    "StageFactory",
    "State",
    "TopicCheckpointStore",
    "fingerprint_of",
    "identity_of",
    "make_private_folder",
    "open_store",
    "slots",
]
