"""Replays the newest messages of a slot with the versions here, and compares the states."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import KafkaException

from fluxplain.config import Config, ConfigError
from fluxplain.config.replica import Replica
from fluxplain.errors import NotYetError
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointStore, Slot
from fluxplain.kafka.checkpoints.envelope import DamagedError, RefusedError
from fluxplain.kafka.checkpoints.equal_states import first_difference
from fluxplain.kafka.client import BrokerError, refusal
from fluxplain.kafka.driver import Received
from fluxplain.kafka.exits import shorter_log
from fluxplain.kafka.faust.peek import read_on
from fluxplain.kafka.headers import foreign, incoming_message
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.registered import LOST, Registered, place_of
from fluxplain.kafka.ownership.writers import ANY, OWN_TOPICS, WRITER, Writer
from fluxplain.kafka.registry.codec import Decoder
from fluxplain.kafka.timeouts import PEEK_S
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas.wording import plural
from fluxplain.stages import Message, Stage, process
from fluxplain.stages.active_model import HasActiveModel
from fluxplain.stages.streams import ChecksIncarnations

READ = 500
"""Largest number of messages that are read at a time."""

MOST_FROM_BEGINNING = 10
"""A state is rebuilt from its log's beginning if that takes at most this many times the messages
that are to be replayed: states in short logs have no older checkpoint."""

NOT_PROVEN = "not proven: "

MakeStage = Callable[[Replica, str, int], Stage]
"""Makes a new stage of a replica for (topic, partition)."""

Track = Callable[[Iterable[Message], Slot, int], Iterable[Message]]
"""Shows the progress of a slot's replay, of at most so many messages."""


class Proof(NamedTuple):
    """What the replay of a slot showed.

    Attributes
    ----------
    slot
        The slot.
    next_offset
        That of its newest checkpoint; None without one, but ``LOST`` if the former versions may
        have published results.
    replayed
        Number of messages that were replayed.
    doubt
        Why the versions here may give other bits; None if they gave the same.
    """

    slot: Slot
    next_offset: int | None
    replayed: int = 0
    doubt: str | None = None

    def __str__(self) -> str:
        if self.doubt is not None:
            return f"{self.slot}: {self.doubt}"
        if self.next_offset in {None, LOST}:
            return f"{self.slot}: no state"
        return f"{self.slot}: the same bits after {plural(self.replayed, 'message')}"


class SlotInput(NamedTuple):
    """A slot with its replica.

    ``measure`` asks the broker for its log, and the offset that its group has committed, or 0.
    """

    replica: Replica
    slot: Slot
    measure: Callable[[], tuple[range, int]]


@dataclass(frozen=True, slots=True)
class SlotReplay:
    """Replays at least ``messages`` of each slot, if a checkpoint is that old.

    ``store`` opens the checkpoints of the registered versions. ``decoder`` reads a schema
    registry's wire format; None without a registry.
    """

    config: Config
    registered: Registered
    store: CheckpointStore
    decoder: Decoder | None
    make_stage: MakeStage
    messages: int
    track: Track

    def proof(self, of: SlotInput) -> Proof:
        """Return what a slot's replay shows.

        Raises ``CheckpointError`` if the newest state cannot be used here, and ``ConfigError`` if
        the log ends before it.
        """
        slot = of.slot
        newest = self.store.load(slot, self.registered.begins.get(str(slot), ANY))
        log_range, committed = of.measure()  # later: a log has grown if a worker still runs
        if newest is None:
            doubt = f"{NOT_PROVEN}its state is gone" if committed else None
            # a worker may have published, and died before its first checkpoint
            is_lost = committed or (log_range.stop > 0 and self._has_begun(slot))
            return Proof(slot, LOST if is_lost else None, doubt=doubt)
        end = newest.next_offset
        if end > log_range.stop:
            raise ConfigError(shorter_log(slot, end, log_range.stop))
        older = self._older(of, log_range.start, newest)
        if older is None:
            return Proof(slot, end, doubt=f"{NOT_PROVEN}there is no older state to start from")
        begin, replayed = older.next_offset, 0
        try:
            self._settle(older.stage, slot)
            for message in self.track(self._messages(slot, begin, end), slot, end - begin):
                self._step(older, message, slot)
                replayed += 1
        except NotYetError as error:
            return Proof(slot, end, replayed, f"{NOT_PROVEN}{error}")
        place = first_difference((older.stage, older.fence), (newest.stage, newest.fence))
        if place is not None:
            doubt = f"other bits after {plural(replayed, 'message')}, first seen at {place}"
            return Proof(slot, end, replayed, doubt)
        if replayed < self.messages and begin > 0:
            few = f"only {plural(replayed, 'message')} can be replayed, of {self.messages:,}"
            return Proof(slot, end, replayed, f"{NOT_PROVEN}{few}")
        return Proof(slot, end, replayed)

    def _has_begun(self, slot: Slot) -> bool:
        return place_of(str(slot)) in map(place_of, self.registered.begins)

    def _older(self, of: SlotInput, begin: int, newest: Checkpoint) -> Checkpoint | None:
        """Return the state to start from: the newest that is old enough, else the oldest.

        ``begin`` is that of the log.
        """
        chosen: Checkpoint | None = None
        for each in self._usable(of.slot, begin, newest):
            chosen = each
            if newest.next_offset - each.next_offset >= self.messages:
                return each
        is_short = newest.next_offset <= MOST_FROM_BEGINNING * self.messages
        if is_short and begin == 0 and newest.life.cold_start is None:
            stage = self.make_stage(of.replica, *of.slot.tp)
            return self._injected(Checkpoint(0, stage, Life(newest.life.settings)))
        return chosen

    def _usable(self, slot: Slot, begin: int, newest: Checkpoint) -> Iterator[Checkpoint]:
        """Yield the older checkpoints of the same life whose messages are in the log."""
        for candidate in self.store.candidates(slot):
            with suppress(DamagedError, RefusedError):
                each = candidate.open()
                is_older = begin <= each.next_offset < newest.next_offset
                if is_older and each.life == newest.life:
                    yield self._injected(each)

    def _injected(self, checkpoint: Checkpoint) -> Checkpoint:
        """Inject what a stage asks, as a worker does."""
        stage = checkpoint.stage
        if isinstance(stage, ChecksIncarnations):
            stage.lives = self.registered
        if isinstance(stage, HasActiveModel):
            stage.active.models = ModelFolder(self.config.model.directory)
        return checkpoint

    def _messages(self, slot: Slot, begin: int, end: int) -> Iterator[Message]:
        """Yield the messages of a slot's input, as its worker read them."""
        is_own = slot.topic in map(self.config.topic, OWN_TOPICS)
        decodes = self.decoder is not None and slot.role in {"model", "drift"}
        while begin < end:
            found = self._read(slot, begin, end)
            for each in found:
                message = incoming_message(each, is_own=is_own)
                if decodes and self.decoder is not None and message.flaw is None:
                    message = self.decoder.opened(message)
                yield message
            begin = found[-1].offset + 1 if len(found) == READ else end

    def _read(self, slot: Slot, begin: int, end: int) -> list[Received]:
        found: list[Received] = []

        def take(message: Received) -> bool:
            if message.offset < end:
                found.append(message)
            return message.offset < end - 1 and len(found) < READ

        what = f"cannot read {slot.tp}"
        try:
            if read_on(self.config, *slot.tp, begin, PEEK_S, take) is None:
                raise BrokerError(f"{what}: messages were deleted meanwhile")
        except KafkaException as error:
            raise refusal(self.config, what, error.args[0]) from None
        return found

    def _step(self, state: Checkpoint, message: Message, slot: Slot) -> None:
        """Let a stage take a message as its worker did; drop the records."""
        if slot.topic in map(self.config.topic, OWN_TOPICS) and message.flaw is None:
            writer = Writer.read(message.headers.get(WRITER, b""))
            if writer is None or not self.registered.knows(writer):
                message = foreign(message)
            elif not state.fence.admits(writer, least=self.registered.number):
                return
        process(state.stage, message)
        self._settle(state.stage, slot)

    def _settle(self, stage: Stage, slot: Slot) -> None:
        """Conclude the wait for an announced model as it was decided."""
        if not isinstance(stage, HasActiveModel) or stage.active.awaited is None:
            return
        place = str(slot.tp), stage.active.awaited.message.offset
        decision = self.registered.decisions.get(place)
        if decision is not None:
            stage.conclude(stage.active.find() if decision == "taken" else None)
