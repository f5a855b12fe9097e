"""Takes over the states of former versions: the work of `fluxplain checkpoints adopt`.

1. Each slot replays its newest messages with the versions here, from an older checkpoint to the
   newest one, which the former versions wrote. If all slots reach the same state, bit for bit, the
   versions give the same results, as far as that shows.
2. One record in the register replaces the registered versions.

That record is all that is written, so a command that is killed has changed nothing or has finished.
The workers do the rest. From the record on, they open checkpoints of the former versions:

- If the bits are the same, each state resumes as it is.
- Otherwise the record has the next offset of each slot's newest checkpoint. No other one of the
  former versions is opened. Its state resumes in a new life, whose number is that of the record: so
  no identity has the results of two versions. The model's worker publishes a notice of the kind
  ``upgrade`` and saves the state at once, in the order of the commit protocol. If it is killed
  before, the next start publishes the same notice again, under the same identity.
- A slot without a state starts with its log, as in a new pipeline, if the former versions cannot
  have published anything there. Otherwise the record names it, and it starts cold.

The number of the settings stays: with a new one, readers would ignore messages between the roles
that were written before and not read yet.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from confluent_kafka.admin import ClusterMetadata

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore, Slot
from fluxplain.kafka.checkpoints.configured import fingerprint_of, identity_of, open_store
from fluxplain.kafka.checkpoints.slot_replay import (
    MakeStage,
    Proof,
    SlotInput,
    SlotReplay,
    Track,
)
from fluxplain.kafka.embedded import is_embedded_cluster
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import LOST, Registered, RegisteredError
from fluxplain.kafka.ownership.writers import ANY
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.topics.describe import Described
from fluxplain.kafka.topics.progress import GroupOffsets


@dataclass(frozen=True, slots=True)
class Adoption:
    """The states of a pipeline whose registered versions are not those here."""

    config: Config
    metadata: ClusterMetadata
    registered: Registered

    def changed(self) -> list[str]:
        """Describe the versions that differ; nothing if those here are registered.

        Raises ``ConfigError`` if no settings are registered, or if others are.
        """
        fingerprint = self.registered.fingerprint
        if fingerprint is None:
            raise ConfigError("no settings are registered yet: there is nothing to adopt")
        here = fingerprint_of(self.config, identity_of(self.config, self.metadata))
        if others := fingerprint.other_settings(here):
            raise RegisteredError(
                f"not only versions differ from the registered ones: so do {', '.join(others)}. A "
                "state belongs to its settings. Run this command with the registered settings, or "
                "replace them with `fluxplain settings replace`"
            )
        return fingerprint.other_versions(here)

    def check_stopped(self) -> None:
        """Raise ``ConfigError`` if a worker runs; an embedded broker does not say."""
        if is_embedded_cluster(self.metadata):
            return
        groups = [self.config.group(replica) for replica in self.config.replicas()]
        members = Described(self.config).groups(groups)
        if running := sorted(group for group, (count, _) in members.items() if count):
            raise ConfigError(
                f"workers still run, in the groups {', '.join(running)}: stop all of them first. "
                "The broker takes up to a minute to notice that one was killed"
            )

    def proofs(self, make_stage: MakeStage, messages: int, track: Track) -> Iterator[Proof]:
        """Replay each slot, and yield what that shows; see :meth:`SlotReplay.proof`."""
        config, store, decoder = self.config, self._store(), open_decoder(self.config)
        replay = SlotReplay(config, self.registered, store, decoder, make_stage, messages, track)
        yield from map(replay.proof, self._inputs())

    def _store(self) -> CheckpointStore:
        """Return the store of the registered versions' checkpoints."""
        identity = identity_of(self.config, self.metadata, self.registered)
        former = self.registered.versions[self.registered.versions_number]
        return open_store(self.config, self.metadata, replace(identity, versions={**former}))

    def _inputs(self) -> Iterator[SlotInput]:
        for replica in self.config.replicas():
            for name in self.config.inputs(replica.role):
                topic = self.config.topic(name)
                with closing(GroupOffsets(self.config, replica, name)) as group:
                    for each in group.ends():
                        measure = partial(_measured, group, each)
                        yield SlotInput(replica, Slot.of(replica, topic, each), measure)

    def register(self, proofs: Sequence[Proof]) -> int:
        """Register the versions here, and return their number.

        Raises ``ConfigError`` if there is no state, or if a worker was started meanwhile, and
        ``RegisteredError`` if other settings or versions were registered.
        """
        offsets = {str(slot): end for slot, end, *_ in proofs if end is not None}
        if not {*offsets.values()} - {LOST}:
            raise ConfigError(
                "there is no checkpoint, so there is nothing to keep. Run `fluxplain settings "
                "replace`: workers then start from the log's beginning"
            )
        self.check_stopped()
        versions = identity_of(self.config, self.metadata).versions
        with closing(Register(self.config)) as register:
            self._check_unchanged(register.read(), proofs)
            return register.adopt(versions, None if are_same(proofs) else offsets)

    def _check_unchanged(self, now: Registered, proofs: Sequence[Proof]) -> None:
        """Raise ``ConfigError`` if states were saved, or workers were started, since the replays.

        Raises ``RegisteredError`` if other settings or versions were registered.
        """
        before, store = self.registered, self._store()
        if (now.number, now.versions_number) != (before.number, before.versions_number):
            raise RegisteredError("other settings or versions were registered meanwhile")
        for slot, end, *_ in proofs:
            begin = now.begins.get(str(slot), ANY)
            newest = store.load(slot, begin)
            found = None if newest is None else newest.next_offset
            if found != (None if end == LOST else end) or begin != before.begins.get(
                str(slot), ANY
            ):
                raise ConfigError(
                    f"a worker has run since the replay of {slot}, so its state may be another "
                    "one now. Stop all workers, and run this command again"
                )


def _measured(group: GroupOffsets, partition: int) -> tuple[range, int]:
    """Return the log of a partition, and the offset that the group has committed, or 0."""
    log_range = range(group.starts()[partition], group.ends()[partition])
    return log_range, group.committed()[partition]


def are_same(proofs: Sequence[Proof]) -> bool:
    """Return whether the versions give the same bits, as far as the replays show."""
    return all(proof.doubt is None for proof in proofs)
