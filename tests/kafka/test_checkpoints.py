"""What every checkpoint store must do, and what each does beyond."""

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from pipeline.config import Config
from pipeline.kafka.checkpoints import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    DirectoryCheckpointStore,
    Envelope,
    Identity,
    Slot,
    TopicCheckpointStore,
)
from pipeline.kafka.checkpoints import envelope as envelopes
from pipeline.kafka.checkpoints.base import KEPT
from pipeline.kafka.checkpoints.opening import libraries
from pipeline.kafka.checkpoints.records import CHUNK_BYTES
from pipeline.kafka.checkpoints.topic import partition_of
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.reader import read_to_end
from pipeline.kafka.topics import create_topics
from pipeline.kafka.writers import Begin
from pipeline.stages import DriftStage
from tests.behaviour.conftest import SETTINGS

SLOT = Slot("drift", "explanations", 0)
IDENTITY = Identity.of({"seed": "one"}, "cluster", {"explanations": "id of the topic"})
KEY = b"a key that signs checkpoints, and is long enough"

MakeStore = Callable[[Envelope], CheckpointStore]


class Large(DriftStage):
    """A stage whose state needs several chunks."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ballast = os.urandom(3 * CHUNK_BYTES)


@pytest.fixture
def stage() -> DriftStage:
    return DriftStage(Config(**SETTINGS))


@pytest.fixture
def topic_config() -> Iterator[Config]:
    """Settings for checkpoints in a topic of the embedded broker."""
    with EmbeddedBroker() as broker:
        settings = {**SETTINGS, "checkpoint": {"store": "topic", "key": KEY.decode()}}
        config = Config(**settings).on_broker(broker.bootstrap_servers)
        create_topics(config)
        yield config


@pytest.fixture(params=["directory", "topic"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    if request.param == "directory":
        return lambda envelope: DirectoryCheckpointStore(tmp_path, envelope)
    config = request.getfixturevalue("topic_config")
    return lambda envelope: TopicCheckpointStore(config, envelope)


def envelope(identity: Identity = IDENTITY, key: bytes = KEY) -> Envelope:
    return Envelope(identity, key)


def test_nothing_is_there_at_first(make_store: MakeStore) -> None:
    assert make_store(envelope()).load(SLOT) is None


def test_the_newest_one_comes_back(make_store: MakeStore, stage: DriftStage) -> None:
    store = make_store(envelope())
    for offset in (9, 10, 100):
        store.save(SLOT, Checkpoint(offset, stage))
    loaded = make_store(envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 100
    assert isinstance(loaded.stage, DriftStage)


def test_large_state_comes_back_whole(make_store: MakeStore) -> None:
    stage = Large(Config(**SETTINGS))
    make_store(envelope()).save(SLOT, Checkpoint(3, stage))
    loaded = make_store(envelope()).load(SLOT)
    assert loaded is not None
    assert isinstance(loaded.stage, Large)
    assert loaded.stage.ballast == stage.ballast


def test_a_new_owner_goes_on_where_the_one_before_stopped(
    make_store: MakeStore, stage: DriftStage
) -> None:
    for offset in range(8):
        store = make_store(envelope())
        before = store.load(SLOT)
        assert (before.next_offset if before else 0) == offset
        store.save(SLOT, Checkpoint(offset + 1, stage))


def test_what_an_owner_before_saves_late_is_not_used(
    make_store: MakeStore, stage: DriftStage
) -> None:
    before, now = make_store(envelope()), make_store(envelope())
    for offset in (100, 110):
        before.save(SLOT, Checkpoint(offset, stage, epoch=1))
    loaded = now.load(SLOT)
    assert loaded is not None
    begin = Begin(epoch=2, next_offset=loaded.next_offset)

    def newest() -> tuple[int, int]:
        found = make_store(envelope()).load(SLOT, begin)
        assert found is not None
        return found.epoch, found.next_offset

    before.save(SLOT, Checkpoint(250, stage, epoch=1))
    assert newest() == (1, 110)
    for offset in (120, 130):
        now.save(SLOT, Checkpoint(offset, stage, epoch=2))
    assert newest() == (2, 130)
    before.save(SLOT, Checkpoint(260, stage, epoch=1))
    assert newest() == (2, 130)


def test_after_replaced_settings_new_ones_are_kept_at_lower_offsets(
    make_store: MakeStore, stage: DriftStage
) -> None:
    for offset in (9_500, 10_000):
        make_store(envelope()).save(SLOT, Checkpoint(offset, stage, epoch=3))
    replaced = make_store(envelope(replace(IDENTITY, registered=5)))
    assert replaced.load(SLOT) is None
    for offset in (50, 60):
        replaced.save(SLOT, Checkpoint(offset, stage, epoch=7))
        loaded = replaced.load(SLOT)
        assert loaded is not None
        assert loaded.next_offset == offset


def test_one_of_another_register_is_refused(make_store: MakeStore, stage: DriftStage) -> None:
    make_store(envelope(replace(IDENTITY, register="one"))).save(SLOT, Checkpoint(9, stage))
    with pytest.raises(CheckpointError, match="the topic register was deleted and made anew"):
        make_store(envelope(replace(IDENTITY, register="two"))).load(SLOT)


def test_slots_are_kept_apart(make_store: MakeStore, stage: DriftStage) -> None:
    store = make_store(envelope())
    store.save(SLOT, Checkpoint(7, stage))
    for other in (
        replace(SLOT, role="model"),
        replace(SLOT, topic="features"),
        replace(SLOT, partition=1),
        replace(SLOT, partition=4),
    ):
        assert store.load(other) is None


OTHERS = {
    "written with: seed": Envelope(replace(IDENTITY, settings={"seed": "other"}), KEY),
    "'python': '2.7'": Envelope(replace(IDENTITY, versions={"python": "2.7"}), KEY),
    "made anew": Envelope(replace(IDENTITY, logs={"explanations": "another id"}), KEY),
    "another key": Envelope(IDENTITY, KEY[::-1]),
    "not signed": Envelope(IDENTITY, None),
}
"""What the log must say → a writer whose checkpoints are not ours."""


@pytest.mark.parametrize("reason", OTHERS)
def test_one_of_something_else_is_refused_and_the_one_before_is_used(
    make_store: MakeStore,
    stage: DriftStage,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # a store in a topic never writes without a key, but somebody else may
    monkeypatch.setattr(Envelope, "signs", True)
    make_store(OTHERS[reason]).save(SLOT, Checkpoint(7, stage))
    with pytest.raises(CheckpointError, match=f"cannot be used: .*{reason}"):
        make_store(envelope()).load(SLOT)

    make_store(envelope()).save(SLOT, Checkpoint(8, stage))
    make_store(OTHERS[reason]).save(SLOT, Checkpoint(9, stage))
    loaded = make_store(envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 8
    assert reason in caplog.text


@pytest.mark.parametrize("version", ["1", "2", "next"])
def test_one_of_another_format_is_refused(
    make_store: MakeStore, stage: DriftStage, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = envelopes.MAGIC, f"fluxplain-checkpoint-{version}"
    with monkeypatch.context() as patch:
        patch.setattr(envelopes, "MAGIC", other)
        make_store(envelope()).save(SLOT, Checkpoint(7, stage))
    with pytest.raises(CheckpointError, match=f"'{other}'.*'{ours}'"):
        make_store(envelope()).load(SLOT)


def test_a_refusal_names_the_command_that_removes_it(
    make_store: MakeStore, stage: DriftStage
) -> None:
    slot = replace(SLOT, partition=3)
    make_store(OTHERS["written with: seed"]).save(slot, Checkpoint(7, stage))
    command = "`fluxplain checkpoints remove --role drift --partition 3`"
    with pytest.raises(CheckpointError, match=re.escape(command)):
        make_store(envelope()).load(slot)


def test_what_is_removed_is_gone_and_the_next_one_is_kept(
    make_store: MakeStore, stage: DriftStage
) -> None:
    writer = make_store(envelope())
    for offset in range(5):
        writer.save(SLOT, Checkpoint(offset, Large(Config(**SETTINGS))))
    make_store(OTHERS["written with: seed"]).save(SLOT, Checkpoint(9, stage))

    assert make_store(envelope()).remove(SLOT)
    assert make_store(envelope()).load(SLOT) is None
    assert not make_store(envelope()).remove(SLOT)

    make_store(envelope()).save(SLOT, Checkpoint(3, stage))
    loaded = make_store(envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 3


def test_only_the_slot_itself_is_removed(make_store: MakeStore, stage: DriftStage) -> None:
    store = make_store(envelope())
    # on four partitions of the topic, the last one shares the slot's
    others = [replace(SLOT, role="model"), replace(SLOT, partition=1), replace(SLOT, partition=4)]
    for each in (SLOT, *others):
        store.save(each, Checkpoint(7, stage))
    assert store.remove(SLOT)
    assert store.load(SLOT) is None
    assert all(store.load(each) for each in others)


def test_another_cluster_starts_anew(tmp_path: Path, stage: DriftStage) -> None:
    DirectoryCheckpointStore(tmp_path, envelope()).save(SLOT, Checkpoint(7, stage))
    other = DirectoryCheckpointStore(tmp_path, envelope(replace(IDENTITY, cluster="other")))
    assert other.load(SLOT) is None


def test_only_the_newest_are_kept(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, envelope())
    for offset in range(10):
        store.save(SLOT, Checkpoint(offset, stage))
    assert len(list(tmp_path.rglob("*.*"))) == KEPT


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_truncated_file_is_passed_over(tmp_path: Path, stage: DriftStage, cut: int) -> None:
    store = DirectoryCheckpointStore(tmp_path, envelope())
    store.save(SLOT, Checkpoint(1, stage))
    store.save(SLOT, Checkpoint(2, stage))
    newest = max(tmp_path.rglob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[:cut])
    loaded = store.load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 1


def test_a_file_of_another_slot_is_passed_over(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, envelope())
    store.save(SLOT, Checkpoint(1, stage))
    other = replace(SLOT, partition=1)
    store.save(other, Checkpoint(2, stage))
    first, second = sorted(tmp_path.rglob("*.checkpoint"))
    second.write_bytes(first.read_bytes())
    assert store.load(other) is None


def test_what_a_killed_writer_left_is_removed(tmp_path: Path, stage: DriftStage) -> None:
    store = DirectoryCheckpointStore(tmp_path, envelope())
    store.save(SLOT, Checkpoint(1, stage))
    folder = next(tmp_path.rglob("*.checkpoint")).parent
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder / f"00000000000000000002.checkpoint.{dead.pid}.tmp").write_bytes(b"half")
    store.save(SLOT, Checkpoint(3, stage))
    assert not list(folder.glob("*.tmp"))


def test_nobody_else_may_write_there(tmp_path: Path, stage: DriftStage) -> None:
    before = os.umask(0)
    try:
        store = DirectoryCheckpointStore(tmp_path / "new", envelope())
        store.save(SLOT, Checkpoint(1, stage))
    finally:
        os.umask(before)
    for folder in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        if folder.is_dir():
            assert not stat.S_IMODE(folder.stat().st_mode) & 0o077, folder


def records_of(config: Config, slot: Slot) -> list[tuple[bytes, bytes]]:
    """Return what stands in the slot's partition of the topic."""
    messages = read_to_end(config, "checkpoints", {partition_of(slot, 4): 0})
    return [(m.key() or b"", m.value() or b"") for m in messages]


def write(config: Config, slot: Slot, records: list[tuple[bytes, bytes]]) -> None:
    """Write into the slot's partition, as anybody could."""
    producer = RecordProducer(config)
    for key, value in records:
        producer.send(config.topic("checkpoints"), value, key, partition_of(slot, 4))
    producer.flush()


def large_checkpoint(config: Config) -> list[tuple[bytes, bytes]]:
    """Return the records of a checkpoint of three chunks, as a topic of another prefix has them."""
    topics = config.topics.model_copy(update={"prefix": "elsewhere."})
    elsewhere = config.model_copy(update={"topics": topics})
    create_topics(elsewhere)
    store = TopicCheckpointStore(elsewhere, envelope())
    store.save(SLOT, Checkpoint(2, Large(Config(**SETTINGS))))
    return records_of(elsewhere, SLOT)


@pytest.mark.parametrize("lost", [None, 0, 1, -1])
def test_a_checkpoint_that_lacks_a_record_is_passed_over(
    topic_config: Config, stage: DriftStage, lost: int | None
) -> None:
    store = TopicCheckpointStore(topic_config, envelope())
    store.save(SLOT, Checkpoint(1, stage))
    records = large_checkpoint(topic_config)
    if lost is not None:
        del records[lost]
    write(topic_config, SLOT, records)
    loaded = TopicCheckpointStore(topic_config, envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == (2 if lost is None else 1)


@pytest.mark.parametrize("place", [0, 1, -1])
def test_one_with_a_changed_byte_is_passed_over(
    topic_config: Config, stage: DriftStage, place: int
) -> None:
    store = TopicCheckpointStore(topic_config, envelope())
    store.save(SLOT, Checkpoint(1, stage))
    records = large_checkpoint(topic_config)
    key, value = records[place]
    middle = len(value) // 2
    records[place] = (key, value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :])
    write(topic_config, SLOT, records)
    loaded = TopicCheckpointStore(topic_config, envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 1


def test_reads_on_until_it_finds_one(topic_config: Config, stage: DriftStage) -> None:
    store = TopicCheckpointStore(topic_config, envelope())
    store.save(SLOT, Checkpoint(5, stage))
    write(topic_config, SLOT, [(b"something else", b"x")] * 1000)
    loaded = TopicCheckpointStore(topic_config, envelope()).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 5


def test_a_topic_needs_a_key(topic_config: Config) -> None:
    with pytest.raises(ValueError, match="signed"):
        TopicCheckpointStore(topic_config, Envelope(IDENTITY))


def test_each_role_and_partition_has_a_partition_of_its_own() -> None:
    slots = [Slot(role, "t", p) for role in ("model", "explainer", "drift") for p in range(5)]
    assert len({partition_of(slot, 15) for slot in slots}) == len(slots)


def test_the_library_of_the_model_is_part_of_what_a_checkpoint_is_for() -> None:
    assert not libraries(Config(**SETTINGS))
    factory = {"factory": "pipeline.models:from_sklearn", "params": {}}
    assert libraries(Config(**{**SETTINGS, "model": factory})) == {"scikit-learn"}
    own = {1: {"model": {"factory": "pipeline.models:from_torch", "params": {}}}}
    assert libraries(Config(**SETTINGS, streams=own)) == {"torch"}
    here = Identity.of({}, "cluster", libraries=["scikit-learn"])
    assert here.versions["scikit-learn"] == version("scikit-learn")
