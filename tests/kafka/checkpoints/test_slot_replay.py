"""What replays of a slot's messages prove about other versions."""

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from fluxplain.config import Config, ConfigError
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot
from fluxplain.kafka.checkpoints.checkpoint_history import History
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.slot_replay import Proof, SlotInput, SlotReplay
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.registered import LOST, Registered
from fluxplain.kafka.ownership.writers import WRITER, Begin, Fence, Writer
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import Evaluation
from fluxplain.stages import ExplainerStage, Message, ModelStage, Stage, process
from fluxplain.stages.active_model import settle_model
from tests.kit import announced, stages
from tests.kit import support as kit

MODEL = Replica("model")

N = 60


class Received(NamedTuple):
    """A message as the broker has it."""

    topic: str
    partition: int
    offset: int
    timestamp: float | None
    key: Any
    value: Any
    headers: Any


def received(messages: Iterable[Message]) -> list[Received]:
    return [
        Received(
            *(m.topic, m.partition, m.offset),
            None if m.timestamp is None else m.timestamp / 1000.0,
            *(m.key, m.value, tuple(m.headers.items())),
        )
        for m in messages
    ]


class Rig:
    """A slot with its log and its store; ``begin`` is the oldest offset in the log."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        messages: Sequence[Message],
        config: Config | None = None,
        role: Any = "model",
    ) -> None:
        self.config = config or kit.linear_config()
        self.messages = messages
        self.slot = Slot(role, messages[0].topic, 0)
        self.registered = Registered(number=1, lives={1})
        envelope = Envelope(Identity.of({}, "cluster"))
        self.store = DirectoryCheckpointStore(folder, envelope, History(keep=100))
        log = received(messages)

        def read(_self: SlotReplay, _slot: Slot, begin: int, end: int) -> list[Received]:
            return log[begin : min(begin + 500, end)]

        monkeypatch.setattr(SlotReplay, "_read", read)

    def fresh(self) -> Stage:
        if self.slot.role == "explainer":
            return ExplainerStage(self.config)
        return ModelStage(self.config, kit.STREAM)

    def save(self, *offsets: int, until: int = N, **more: Any) -> None:
        """Process the messages, with checkpoints on the way, as a worker does."""
        stage, fence = self.fresh(), Fence()
        for message in self.messages[:until]:
            if message.offset in offsets:
                self.store.save(self.slot, Checkpoint(message.offset, stage, fence=fence, **more))
            writer = Writer.read(message.headers.get(WRITER, b""))
            if writer is None or fence.admits(writer, least=1):
                process(stage, message)
        self.store.save(self.slot, Checkpoint(until, stage, fence=fence, **more))

    def proof(self, messages: int = 20, *, begin: int = 0, committed: int = 0) -> Proof:
        replay = SlotReplay(
            *(self.config, self.registered, self.store, None),
            lambda _replica, _topic, _partition: self.fresh(),
            messages,
            lambda each, _slot, _total: each,
        )
        replica = replace(MODEL, role=self.slot.role)

        def measure() -> tuple[range, int]:
            return range(begin, len(self.messages)), committed

        return replay.proof(SlotInput(replica, self.slot, measure))


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch, kit.messages_of(kit.linear_records(N)))


@pytest.mark.parametrize(("messages", "replayed"), [(5, 10), (10, 10), (20, 25), (55, 60)])
def test_it_begins_at_the_newest_checkpoint_that_is_old_enough(
    rig: Rig, messages: int, replayed: int
) -> None:
    rig.save(10, 35, 50)
    begin = 0 if messages == 55 else 1
    assert rig.proof(messages, begin=begin) == Proof(rig.slot, N, replayed)


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("begin", [0, N])
def test_a_worker_without_a_checkpoint_may_have_published(
    rig: Rig, begun: bool, begin: int
) -> None:
    """It may have died before its first one; it had another number of shards then."""
    if begun:
        rig.registered.begins["model-0of2 fluxplain.features-0"] = Begin(2, -1)
    assert rig.proof(begin=begin) == Proof(rig.slot, LOST if begun else None)
    rig.messages = []
    assert rig.proof() == Proof(rig.slot, None)


def test_too_few_messages_prove_nothing(rig: Rig) -> None:
    rig.save(50)
    proof = rig.proof(20, begin=1)
    assert (proof.replayed, proof.doubt) == (
        10,
        "not proven: only 10 messages can be replayed, of 20",
    )


def test_messages_that_were_deleted_cannot_be_replayed(rig: Rig) -> None:
    rig.save(30)
    assert rig.proof(begin=31).doubt == "not proven: there is no older state to start from"


def test_a_state_that_started_cold_is_not_rebuilt_from_the_logs_beginning(rig: Rig) -> None:
    rig.save(life=Life(1, 7))
    assert rig.proof().doubt == "not proven: there is no older state to start from"


def test_a_long_log_is_not_read_from_its_beginning(rig: Rig) -> None:
    rig.save(58)
    assert rig.proof(messages=3).doubt == "not proven: only 2 messages can be replayed, of 3"


def test_a_worker_that_runs_meanwhile_does_not_make_the_log_look_short(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, load = rig.messages, rig.store.load
    rig.messages = messages[:40]

    def load_late(*args: Any) -> Checkpoint | None:
        rig.messages = messages
        rig.save(until=N)
        return load(*args)

    monkeypatch.setattr(rig.store, "load", load_late)
    assert rig.proof() == Proof(rig.slot, N, N)


def test_other_bits_are_found_and_placed(rig: Rig) -> None:
    rig.save(30)
    found = rig.store.load(rig.slot)
    assert found is not None
    cast(ModelStage, found.stage).active.model.offsets["u"] = 0.0
    rig.store.save(rig.slot, found)
    doubt = rig.proof().doubt
    assert doubt is not None
    assert doubt.startswith("other bits after 30 messages, first seen at ")
    assert "model" in doubt


def test_without_a_state_it_matters_whether_there_was_one(rig: Rig) -> None:
    assert rig.proof() == Proof(rig.slot, None)
    assert rig.proof(committed=5).doubt == "not proven: its state is gone"


def test_a_log_that_ends_before_the_state_is_refused(rig: Rig) -> None:
    rig.save()
    rig.messages = rig.messages[:40]
    with pytest.raises(ConfigError, match="the topic ends at 40"):
        rig.proof()


def test_messages_of_former_owners_and_of_nobody_are_treated_as_workers_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kit.linear_config(explain={"emit_every": 1})
    runs = kit.of_kind(stages.modelled(config, kit.linear_records(N)), Evaluation)
    topic, name = config.topic("evaluations"), "model fluxplain.features-0"
    messages = [
        Message(
            topic,
            0,
            i,
            run.message_key().encode(),
            run.encode(),
            headers={WRITER: Writer(name, 5 if i < 20 or i % 2 else 3).header},
        )
        for i, run in enumerate(runs)
    ]
    rig = Rig(tmp_path, monkeypatch, messages, config, "explainer")
    rig.registered.epochs[name] = 5
    rig.save(30, until=len(messages))
    proof = rig.proof(20)
    assert proof.doubt is None
    rig.registered.epochs[name] = 4
    assert rig.proof(20).doubt is not None, "no worker wrote them"


@pytest.mark.parametrize("decision", ["taken", "withdrawn"])
def test_an_announced_model_is_taken_or_withdrawn_as_it_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: Any
) -> None:
    folder = ModelFolder(tmp_path / "models")
    sha256 = folder.put(pickle.dumps(kit.Additive()))
    config = announced.config_of(tmp_path / "models")
    values: list[Any] = [*kit.linear_records(N)]
    values[30] = announced.announcement(sha256)
    values[40] = {"withdraw": "v2"}
    join = Writer("join fluxplain.features-0", 2)
    messages = [
        replace(each, headers={**each.headers, WRITER: join.header})
        for each in announced.messages(config, values)
    ]
    rig = Rig(tmp_path / "state", monkeypatch, messages, config)
    stage, fence = ModelStage(config, kit.STREAM), Fence({join.slot: join.epoch})
    stage.active.models = folder if decision == "taken" else None
    for message in messages:
        if message.offset == 10:
            rig.store.save(rig.slot, Checkpoint(10, stage, fence=fence))
        process(stage, message)
        settle_model(stage, messages[message.offset + 1 :])
    rig.store.save(rig.slot, Checkpoint(N, stage, fence=fence))
    rig.registered.epochs[join.slot] = join.epoch
    rig.registered.decisions[str(rig.slot.tp), 30] = decision
    assert rig.proof(begin=1).doubt is None
    if decision == "taken":
        folder.path(sha256).unlink()
        doubt = rig.proof(begin=1).doubt
        assert doubt is not None
        assert "not proven: model v2 was announced, but" in doubt
