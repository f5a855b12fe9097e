"""What every checkpoint store must do, and what each does beyond."""

import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from fluxplain.config import Config
from fluxplain.kafka.checkpoints import envelope as envelopes
from fluxplain.kafka.checkpoints.checkpoint import (
    KEPT,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Slot,
)
from fluxplain.kafka.checkpoints.configured import libraries
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.topic import TopicCheckpointStore, partition_of
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.writers import ANY, Begin
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.stages import DriftStage
from tests.kit.sealed import Large
from tests.kit.settings import SETTINGS

SLOT = Slot("drift", "explanations", 0)
IDENTITY = Identity.of({"seed": "one"}, "cluster", {"explanations": "id of the topic"})
KEY = b"a key that signs checkpoints, and is long enough"
OURS = Envelope(IDENTITY, KEY)

MakeStore = Callable[[Envelope], CheckpointStore]


STAGE = DriftStage(Config(**SETTINGS))


def save(store: CheckpointStore, *offsets: int, slot: Slot = SLOT, epoch: int = 1) -> None:
    for offset in offsets:
        store.save(slot, Checkpoint(offset, STAGE, epoch=epoch))


def newest(store: CheckpointStore, slot: Slot = SLOT, begin: Begin = ANY) -> int | None:
    loaded = store.load(slot, begin)
    return None if loaded is None else loaded.next_offset


@pytest.fixture
def topic_config() -> Iterator[Config]:
    """Settings for checkpoints in a topic of the embedded broker."""
    with EmbeddedBroker() as broker:
        settings = {**SETTINGS, "checkpoint": {"store": "topic", "key": KEY.decode()}}
        config = Config(**settings).on_broker(broker.bootstrap_servers)
        create_topics(config)
        yield config


@pytest.fixture(params=["directory", "topic"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    if request.param == "directory":
        return lambda envelope: DirectoryCheckpointStore(tmp_path, envelope)
    config = request.getfixturevalue("topic_config")
    return lambda envelope: TopicCheckpointStore(config, envelope)


def test_large_state_comes_back_whole(make: MakeStore) -> None:
    stage = Large(Config(**SETTINGS))
    make(OURS).save(SLOT, Checkpoint(3, stage))
    loaded = make(OURS).load(SLOT)
    assert loaded is not None
    assert isinstance(loaded.stage, Large)
    assert loaded.stage.ballast == stage.ballast


def test_a_new_owner_goes_on_where_the_one_before_stopped(make: MakeStore) -> None:
    before = None
    for offset in (8, 9, 10, 11, 99, 100, 101, 1000):
        store = make(OURS)
        assert newest(store) == before
        save(store, offset)
        before = offset


def test_what_an_owner_before_saves_late_is_not_used(make: MakeStore) -> None:
    before, now = make(OURS), make(OURS)
    save(before, 100, 110)
    assert newest(now) == 110
    begin = Begin(epoch=2, next_offset=110)
    save(before, 250)
    assert newest(make(OURS), begin=begin) == 110
    save(now, 120, 130, epoch=2)
    assert newest(make(OURS), begin=begin) == 130
    save(before, 260)
    loaded = make(OURS).load(SLOT, begin)
    assert loaded is not None
    assert (loaded.epoch, loaded.next_offset) == (2, 130)


def test_after_replaced_settings_new_ones_are_kept_at_lower_offsets(make: MakeStore) -> None:
    save(make(OURS), 9_500, 10_000, epoch=3)
    replaced = make(Envelope(replace(IDENTITY, registered=5), KEY))
    assert newest(replaced) is None
    for offset in (50, 60):
        save(replaced, offset, epoch=7)
        assert newest(replaced) == offset


OTHER_SLOTS = (
    replace(SLOT, role="model"),
    replace(SLOT, topic="features"),
    replace(SLOT, partition=1),
    # on four partitions of the topic, the last one shares the slot's
    replace(SLOT, partition=4),
)


def test_slots_are_kept_and_removed_apart(make: MakeStore) -> None:
    store = make(OURS)
    save(store, 7)
    for other in OTHER_SLOTS:
        assert newest(store, other) is None
        save(store, 7, slot=other)
    assert store.remove(SLOT)
    assert newest(store) is None
    assert all(newest(store, other) for other in OTHER_SLOTS)


OTHERS = {
    "written with: seed": Envelope(replace(IDENTITY, settings={"seed": "other"}), KEY),
    "python 2.7": Envelope(replace(IDENTITY, versions={"python": "2.7"}), KEY),
    "explanations was deleted and created again": Envelope(
        replace(IDENTITY, logs={"explanations": "another id"}), KEY
    ),
    "the topic register was deleted and created again": Envelope(
        replace(IDENTITY, register="another id"), KEY
    ),
    "another key": Envelope(IDENTITY, KEY[::-1]),
    "not signed": Envelope(IDENTITY, None),
}
"""What the log must say → a writer whose checkpoints are not ours."""


@pytest.mark.parametrize("reason", OTHERS)
def test_one_of_something_else_is_refused_and_the_one_before_is_used(
    make: MakeStore, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # a store in a topic never writes without a key, but somebody else may
    monkeypatch.setattr(Envelope, "signs", True)
    save(make(OTHERS[reason]), 7)
    with pytest.raises(CheckpointError, match=f"cannot be used: .*{reason}") as error:
        make(OURS).load(SLOT)
    assert "`fluxplain checkpoints remove --role drift --partition 0`" in str(error.value)
    save(make(OURS), 8)
    save(make(OTHERS[reason]), 9)
    assert newest(make(OURS)) == 8
    assert reason in caplog.text


@pytest.mark.parametrize("version", ["1", "2", "next"])
def test_one_of_another_format_is_refused(
    make: MakeStore, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = envelopes.MAGIC, f"fluxplain-checkpoint-{version}"
    with monkeypatch.context() as patch:
        patch.setattr(envelopes, "MAGIC", other)
        save(make(OURS), 7)
    with pytest.raises(CheckpointError, match=f"'{other}'.*'{ours}'"):
        make(OURS).load(SLOT)


def test_what_is_removed_is_gone_and_the_next_one_is_kept(make: MakeStore) -> None:
    writer = make(OURS)
    for offset in range(5):
        writer.save(SLOT, Checkpoint(offset, Large(Config(**SETTINGS))))
    save(make(OTHERS["written with: seed"]), 9)
    assert make(OURS).remove(SLOT)
    assert newest(make(OURS)) is None
    assert not make(OURS).remove(SLOT)
    save(make(OURS), 3)
    assert newest(make(OURS)) == 3


# Checkpoints as files.


@pytest.fixture
def directory(tmp_path: Path) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(tmp_path, OURS)


def test_another_cluster_starts_from_scratch(
    tmp_path: Path, directory: DirectoryCheckpointStore
) -> None:
    save(directory, 7)
    other = Envelope(replace(IDENTITY, cluster="other"), KEY)
    assert newest(DirectoryCheckpointStore(tmp_path, other)) is None


def test_only_the_newest_are_kept(tmp_path: Path, directory: DirectoryCheckpointStore) -> None:
    save(directory, *range(10))
    assert len(list(tmp_path.rglob("*.*"))) == KEPT


def test_what_a_killed_writer_left_is_removed(
    tmp_path: Path, directory: DirectoryCheckpointStore
) -> None:
    save(directory, 1)
    folder = next(tmp_path.rglob("*.checkpoint")).parent
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder / f"00000000000000000002.checkpoint.{dead.pid}.tmp").write_bytes(b"half")
    save(directory, 3)
    assert not list(folder.glob("*.tmp"))


def test_nobody_else_may_write_there(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save(DirectoryCheckpointStore(tmp_path / "new", OURS), 1)
    finally:
        os.umask(before)
    for folder in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        if folder.is_dir():
            assert not stat.S_IMODE(folder.stat().st_mode) & 0o077, folder


# Checkpoints in a topic.


def test_reads_on_until_it_finds_one(topic_config: Config) -> None:
    save(TopicCheckpointStore(topic_config, OURS), 5)
    producer = RecordProducer(topic_config)
    for _ in range(1000):  # as anybody could
        producer.send(
            topic_config.topic("checkpoints"), b"x", b"something else", partition_of(SLOT, 4)
        )
    producer.flush()
    assert newest(TopicCheckpointStore(topic_config, OURS)) == 5


def test_a_topic_needs_a_key(topic_config: Config) -> None:
    with pytest.raises(ValueError, match="signed"):
        TopicCheckpointStore(topic_config, Envelope(IDENTITY))


def test_each_role_and_partition_has_a_partition_of_its_own() -> None:
    slots = [Slot(role, "t", p) for role in ("model", "explainer", "drift") for p in range(5)]
    assert len({partition_of(slot, 15) for slot in slots}) == len(slots)


def test_the_library_of_the_model_is_part_of_what_a_checkpoint_is_for() -> None:
    assert not libraries(Config(**SETTINGS))
    factory = {"factory": "fluxplain.models:from_sklearn", "params": {}}
    assert libraries(Config(**{**SETTINGS, "model": factory})) == {"scikit-learn"}
    own = {1: {"model": {"factory": "fluxplain.models:from_torch", "params": {}}}}
    assert libraries(Config(**SETTINGS, streams=own)) == {"torch"}
    here = Identity.of({}, "cluster", libraries=["scikit-learn"])
    assert here.versions["scikit-learn"] == version("scikit-learn")


NEWER = replace(IDENTITY, versions={**IDENTITY.versions, "river": "9.9.9"})


def adopted(slots: dict[str, int] | None = None) -> Identity:
    """Return the identity of newer versions, under number 7, which have adopted former states."""
    history = {1: IDENTITY.versions, 7: NEWER.versions}
    return replace(NEWER, history=history, adopted={} if slots is None else {7: slots})


def test_a_state_of_other_versions_is_refused_with_the_command_that_adopts_it(
    make: MakeStore,
) -> None:
    save(make(OURS), 10)
    with pytest.raises(CheckpointError, match=r"river .*\(here 9\.9\.9\).*checkpoints adopt`"):
        make(Envelope(NEWER, KEY)).load(SLOT)


def test_a_state_of_former_versions_with_the_same_bits_resumes_in_its_life(make: MakeStore) -> None:
    save(make(OURS), 10, 20)
    newer = make(Envelope(adopted(), KEY))
    found = newer.load(SLOT)
    assert found is not None
    assert (found.next_offset, found.life, found.is_upgraded) == (20, Life(), False)
    newer.save(SLOT, replace(found, next_offset=30))
    assert newest(make(Envelope(adopted(), KEY))) == 30
    assert newest(make(OURS)) == 20, "former versions do not go on with it"


def test_with_other_bits_only_the_adopted_state_resumes_and_in_a_new_life(make: MakeStore) -> None:
    save(make(OURS), 10, 20)
    newer = make(Envelope(adopted({str(SLOT): 10}), KEY))
    found = newer.load(SLOT)
    assert found is not None
    assert (found.next_offset, found.life, found.is_upgraded) == (10, Life(1, 7), True)
    newer.save(SLOT, replace(found, next_offset=30, epoch=2))
    again = newer.load(SLOT)
    assert again is not None
    assert (again.next_offset, again.life, again.is_upgraded) == (30, Life(1, 7), False)


@pytest.mark.parametrize("slots", [{}, {str(SLOT): 11}, {"drift other-0": 10}])
def test_with_other_bits_no_other_state_resumes(make: MakeStore, slots: dict[str, int]) -> None:
    save(make(OURS), 10)
    with pytest.raises(CheckpointError, match="another one was adopted"):
        make(Envelope(adopted(slots), KEY)).load(SLOT)


@pytest.mark.parametrize("number", [None, "1", 1.0, [1], True, 3])
@pytest.mark.parametrize("versions", [{}, None, IDENTITY.versions])
def test_a_malformed_or_unknown_number_of_the_versions_is_refused(
    number: object, versions: object
) -> None:
    header, _ = Envelope(IDENTITY).seal(SLOT, Checkpoint(10, STAGE))
    forged = {**json.loads(header), "versions": versions, "versions_number": number}
    with pytest.raises(envelopes.OtherVersionsError):
        Envelope(adopted()).read_header(SLOT, json.dumps(forged).encode())


def test_a_state_from_before_versions_had_numbers_is_opened() -> None:
    header, _ = Envelope(IDENTITY).seal(SLOT, Checkpoint(10, STAGE))
    fields = json.loads(header)
    del fields["versions_number"], fields["versions"]["processor"]
    former = {name: each for name, each in IDENTITY.versions.items() if name != "processor"}
    here = replace(adopted(), history={1: former, 7: NEWER.versions})
    assert Envelope(here).read_header(SLOT, json.dumps(fields).encode())["next_offset"] == 10
