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

The number of the settings stays: with a new one, readers would ignore messages between the roles
that were written before and not read yet.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from confluent_kafka.admin import ClusterMetadata

from fluxplain.config import Config, ConfigError
from fluxplain.kafka.checkpoints.checkpoint import Slot
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
from fluxplain.kafka.ownership.registered import Registered, RegisteredError
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
        config, decoder = self.config, open_decoder(self.config)
        identity = identity_of(config, self.metadata, self.registered)
        former = self.registered.versions[self.registered.versions_number]
        store = open_store(config, self.metadata, replace(identity, versions={**former}))
        replay = SlotReplay(config, self.registered, store, decoder, make_stage, messages, track)
        yield from map(replay.proof, self._inputs())

    def _inputs(self) -> Iterator[SlotInput]:
        for replica in self.config.replicas():
            for name in self.config.inputs(replica.role):
                with closing(GroupOffsets(self.config, replica, name)) as group:
                    starts, ends, committed = group.starts(), group.ends(), group.committed()
                for partition, start in starts.items():
                    slot = Slot.of(replica, self.config.topic(name), partition)
                    log_range = range(start, ends[partition])
                    yield SlotInput(replica, slot, log_range, committed[partition])

    def register(self, proofs: Sequence[Proof]) -> int:
        """Register the versions here, and return their number.

        Raises ``ConfigError`` if there is no state, or if a worker was started meanwhile, and
        ``RegisteredError`` if other settings or versions were registered.
        """
        offsets = {str(slot): end for slot, end, *_ in proofs if end is not None}
        if not offsets:
            raise ConfigError(
                "there is no checkpoint, so there is nothing to keep. Run `fluxplain settings "
                "replace`: workers then start from the log's beginning"
            )
        self.check_stopped()
        versions = identity_of(self.config, self.metadata).versions
        with closing(Register(self.config)) as register:
            register.read()
            return register.adopt(versions, None if are_same(proofs) else offsets)


def are_same(proofs: Sequence[Proof]) -> bool:
    """Return whether the versions give the same bits, as far as the replays show."""
    return all(proof.doubt is None for proof in proofs)
