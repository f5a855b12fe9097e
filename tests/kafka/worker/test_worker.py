"""What a worker takes, publishes and drops when partitions are assigned and revoked."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot, Snapshot
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.faust.transport import FaustDriver
from fluxplain.kafka.headers import Unreadable, incoming_message
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.kafka.ownership.writers import WRITER, Begin, Fence, Writer
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.merge import Merge
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.worker import REST_S, RoleWorker
from fluxplain.schemas import Change, DeadLetter, Evaluation, Record
from fluxplain.stages import DriftStage, Message, ModelStage, Stage
from fluxplain.stages.stage import ORIGIN, ORIGIN_TIME
from tests.kit.recorder import Recorder, answers
from tests.kit.records import explanation, prediction
from tests.kit.settings import SETTINGS

CONFIG = Config(**SETTINGS)

STAGE = DriftStage(CONFIG)

TP_0 = TopicPartition("fluxplain.features", 0)

JOIN = Writer("join fluxplain.labels-9", 2)
"""An owner that the register knows."""


class OneCheckpoint:
    """A store that always has the same checkpoint, or none."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint

    def load(self, _slot: Slot, _begin: Begin) -> Checkpoint | None:
        return self.checkpoint

    def save(self, _slot: Slot, snapshot: Snapshot) -> None:
        snapshot.pickled()


class Claims:
    """A register in memory, which only counts claims."""

    def __init__(self) -> None:
        self.number = 1
        self.epochs = {JOIN.slot: JOIN.epoch}

    def claim(self, slots: list[str]) -> dict[str, int]:
        self.number += len(slots)
        claimed = dict.fromkeys(slots, self.number)
        self.epochs |= claimed
        return claimed

    def begin(self, slot: str, begin: Begin) -> None:
        assert begin.epoch <= self.number, slot

    def is_life(self, number: int) -> bool:
        return number <= self.number

    def continues(self, _number: int, _before: int, _place: str) -> bool:
        return False

    def read(self, number: int | None = None) -> Registered:
        return Registered(number=1, epochs=dict(self.epochs), versions={1: {}})


class Adopted(Claims):
    """A register in which number 30 is that of other versions, with the slots of former states."""

    def __init__(self, slots: dict[str, int]) -> None:
        super().__init__()
        self.slots = slots

    def read(self, number: int | None = None) -> Registered:
        return replace(super().read(number), adopted={30: self.slots})

    def cold_start(self, _place: str, _offset: int, _settings: int, _versions: int) -> int:
        return 40


class Rig:
    """A worker without a broker, with what it sends."""

    def __init__(
        self,
        replica: Replica,
        stage: Stage,
        checkpoint: Checkpoint | None = None,
        config: Config = CONFIG,
        claims: Claims | None = None,
    ) -> None:
        self.recorder = Recorder()
        metrics = WorkerMetrics(config, replica)
        producer = cast(RecordProducer, self.recorder)
        self.outbox = Outbox(config, producer, 4, metrics.published.observe)
        driver = FaustDriver(faust.App(f"test-worker-{replica}"))
        store, register = cast(Any, OneCheckpoint(checkpoint)), cast(Any, claims or Claims())
        context = Context(config, replica, driver, store, self.outbox, register, 1, 1, metrics)
        self.worker = RoleWorker(context, lambda _topic, _partition: stage)

    def start(self, tp: TopicPartition = TP_0, earliest: int = 0, end: int = 0) -> int | None:
        """Claim and load a partition, as the driver does."""

        async def start() -> int | None:
            await self.worker.claim([tp])
            return await self.worker.load(tp, range(earliest, end), committed=None)

        return asyncio.run(start())

    def labelled(self, stream: str) -> set[str]:
        """Return the metrics that are about a stream."""
        return {
            sample.name
            for family in self.worker.context.metrics.registry.collect()
            for sample in family.samples
            if sample.labels.get("stream") == stream
        }


def faust_message(tp: TopicPartition, value: bytes, headers: dict[str, bytes]) -> Any:
    """Return the first message of a partition, as Faust reads it without a rebalance before."""
    return faust.types.Message(
        *(tp.topic, tp.partition, 0),
        timestamp=1.5,
        timestamp_type=0,
        headers=list(headers.items()),
        key=None,
        value=value,
        checksum=None,
        tp=tp,
        generation_id=0,
    )


def delivery_of(tp: TopicPartition, headers: dict[str, bytes]) -> Any:
    """Return the first 16 messages of a partition, as the driver delivers them together."""
    messages = [faust_message(tp, b"{}", headers) for _ in range(16)]
    for offset, message in enumerate(messages):
        message.offset = offset
    return SimpleNamespace(**tp._asdict(), next_offset=16, messages=lambda: iter(messages))


class SlowStage:
    """A stage that notes what it takes, and takes a while."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def decode(self, message: Message) -> Message:
        return message

    def step(self, message: Message) -> Sequence[Record]:
        self.taken.append(message.offset)
        time.sleep(2 * REST_S)
        return []


@pytest.mark.parametrize(
    ("slots", "incarnation"),
    [
        ({str(Slot("model", *TP_0)): -1}, "40"),
        ({str(Slot("model", *TP_0)): 60}, "40"),
        ({"model-1of2 fluxplain.features-0": 60}, "40"),
        ({"model fluxplain.features-1": 60, "join fluxplain.features-0": 60}, "1"),
    ],
)
@pytest.mark.parametrize("end", [0, 9])
def test_without_a_checkpoint_it_starts_cold_only_where_former_versions_published(
    slots: dict[str, int], incarnation: str, end: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the log does not matter: a worker that dies starts again in the same life."""
    rig = Rig(Replica("model"), ModelStage(CONFIG, str(TP_0)), claims=Adopted(slots))
    rig.start(end=end)
    [partition] = rig.worker.context.assignment
    assert partition.life.incarnation == incarnation
    assert ("starts cold" in caplog.text) == (incarnation == "40")


def test_a_shutdown_waits_for_one_message_of_a_delivery_only() -> None:
    stage = SlowStage()
    rig = Rig(Replica("drift"), cast(Any, stage))
    tp = TopicPartition(CONFIG.topic("explanations"), 0)
    rig.start(tp, end=16)
    delivery, worker = delivery_of(tp, {WRITER: JOIN.header}), rig.worker

    async def agent() -> None:
        async with worker.turns(delivery) as turns:
            async for turn in turns:
                turn.publish(turn.step())
                await turn.done()

    async def stop_soon() -> None:
        taking = asyncio.create_task(agent())
        while len(stage.taken) < 3:
            await asyncio.sleep(0)
        worker.context.assignment.is_stopping = True
        async with worker._busy:
            assert len(stage.taken) <= 4
        await taking

    asyncio.run(stop_soon())
    assert stage.taken == [*range(len(stage.taken))]
    assert len(stage.taken) <= 4


class DriverInGenerations(FaustDriver):
    """A driver whose group begins generations, and which has more, when it is told to."""

    def __init__(self) -> None:
        self.generation = 0
        self.more = False

    def is_current(self, message: Any) -> bool:
        return bool(message.generation_id == self.generation)

    def has_more(self) -> bool:
        return self.more

    def log_end(self, tp: TopicPartition) -> int | None:
        return 16

    def pause(self, tp: TopicPartition) -> None:
        pass


@pytest.mark.parametrize("others", ["end", "do not end", "take long"])
def test_records_about_deliveries_that_wait_together_are_sent_together(
    others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_s = {"end": 60.0, "do not end": 0.0, "take long": 0.01}[others]
    monkeypatch.setattr("fluxplain.kafka.worker.worker.SHARED_S", shared_s)
    rig, driver = Rig(Replica("model"), cast(Any, SlowStage())), DriverInGenerations()
    object.__setattr__(rig.worker.context, "driver", driver)
    rig.start()
    delivery, sent = delivery_of(TP_0, {}), []

    async def agent() -> None:
        for driver.more in (True, False):
            rig.outbox.send(prediction(0), None, 0)
            rig.worker._assignment.get(*TP_0).next_offset = 0  # type: ignore[union-attr]
            async with rig.worker.turns(delivery) as turns:
                async for turn in turns:
                    if others == "take long":
                        time.sleep(2.0 * shared_s)
                    await turn.done()
            sent.append(len(rig.recorder.sent))

    monkeypatch.setattr("fluxplain.kafka.worker.outbox.LINGER_S", 60.0)
    asyncio.run(agent())
    assert sent == ([0, 2] if others == "end" else [1, 2])


def test_what_is_left_of_a_delivery_after_a_rebalance_is_read_again() -> None:
    """Where topics merge, it would be in front of what is read again."""
    config = Config(**{**SETTINGS, "label": {"type": "integer", "topic": True}})
    rig, driver = Rig(Replica("join"), cast(Any, SlowStage()), config=config), DriverInGenerations()
    worker, topics = rig.worker, [config.topic("features"), config.topic("labels")]
    object.__setattr__(worker.context, "driver", driver)
    worker._merge = Merge(topics, worker.context.assignment, driver)
    delivery = delivery_of(TP_0, {})

    async def agent() -> None:
        for topic in topics:
            tp = TopicPartition(topic, 0)
            await worker.claim([tp])
            await worker.load(tp, range(16), committed=None)
        async with worker.turns(delivery) as turns:
            async for _ in turns:
                raise AssertionError("no message has a turn: labels are awaited")
            assert worker._merge is not None
            assert len(worker._merge._held[0][TP_0.topic].messages) == 16
            await worker.on_revoked()
            driver.generation = 1
            worker.on_assigned([TopicPartition(topic, 0) for topic in topics])
        async with worker.turns(delivery) as turns:
            async for _ in turns:
                raise AssertionError("a message of the former generation has a turn")
        assert worker._merge._held == {}

    asyncio.run(agent())


def test_partitions_that_stay_keep_their_state_and_the_others_lose_it() -> None:
    rig, moves = Rig(Replica("drift"), STAGE), TopicPartition(TP_0.topic, 1)
    object.__setattr__(rig.worker.context, "driver", CommittingDriver(faust.App("test")))
    for tp in TP_0, moves:
        rig.start(tp, end=9)
    stays, moved = rig.worker.context.assignment
    stays.next_offset = 7
    asyncio.run(rig.worker.on_revoked())
    assert [p.saved_offset for p in (stays, moved)] == [7, 0], "what is done is saved at once"
    assert stays.is_held
    assert moved.is_held, "until it is known which partitions move"
    rig.worker.on_assigned([TP_0])
    assert [*rig.worker.context.assignment] == [stays]
    assert (stays.is_held, moved.is_held) == (True, False)
    assert rig.worker.next_offset(TP_0) == 7
    assert rig.worker.next_offset(moves) is None
    asyncio.run(rig.worker.confirm())
    assert [*rig.worker.context.assignment] == [stays]


def test_a_partition_that_another_worker_owned_meanwhile_is_loaded_again() -> None:
    """As after this one was expelled from its group for two rebalances."""
    rig = Rig(Replica("drift"), STAGE)
    rig.start(end=9)
    [before] = rig.worker.context.assignment
    cast(Any, rig.worker.context.register).claim([str(before.slot)])
    rig.worker.on_assigned([TP_0])
    asyncio.run(rig.worker.confirm())
    assert not before.is_held
    assert rig.worker.next_offset(TP_0) is None


def test_a_message_whose_writer_is_looked_up_during_a_rebalance_is_taken() -> None:
    """Its partition stays, so nobody else takes it."""
    tp = TopicPartition(CONFIG.topic("observations"), 0)
    rig = Rig(Replica("model"), ModelStage(CONFIG, str(tp)))
    rig.start(tp)
    worker, register = rig.worker, cast(Any, rig.worker.context.register)

    def read(number: int | None = None) -> Registered:
        if number is not None:
            worker.on_assigned([tp])
        return Claims.read(register, number)

    register.read = read
    turn = asyncio.run(worker._turn(faust_message(tp, b"{}", {WRITER: JOIN.header})))
    assert turn is not None
    assert worker.next_offset(tp) == 0


@pytest.mark.parametrize("is_member", [False, True])
@pytest.mark.parametrize("when", ["revoked", "due", "stopped"])
def test_a_former_owner_writes_no_checkpoint(is_member: bool, when: str) -> None:
    """It was frozen, and a topic keeps only the last three checkpoints of a slot.

    A claim of a worker that the broker does not confirm, which comes late, changes nothing.
    """
    config = Config(**{**SETTINGS, "checkpoint": {"interval_s": 0.05}})
    rig, driver = Rig(Replica("drift"), STAGE, config=config), CommittingDriver(faust.App("test"))
    object.__setattr__(rig.worker.context, "driver", driver)
    rig.start(end=9)
    [partition] = rig.worker.context.assignment
    cast(Any, rig.worker.context.register).claim([str(partition.slot)])
    driver.takes_commits = is_member
    partition.next_offset = 5

    async def act() -> None:
        if when == "revoked":
            await rig.worker.on_revoked()
        elif when == "stopped":
            await rig.worker.shut_down()
        else:
            await asyncio.sleep(0.06)
            await rig.worker.tick()
            await rig.worker.status.committer._finished()

    asyncio.run(act())
    assert partition.saved_offset == (5 if is_member else 0)


def test_each_of_two_rebalances_in_a_row_hands_over_what_is_done() -> None:
    """While a worker joins, its commits are refused, too."""
    rig, driver = Rig(Replica("drift"), STAGE), CommittingDriver(faust.App("test"))
    object.__setattr__(rig.worker.context, "driver", driver)
    rig.start(end=9)
    [partition] = rig.worker.context.assignment
    for offset, driver.takes_commits in ((3, True), (5, False), (7, False)):
        partition.next_offset = offset
        asyncio.run(rig.worker.on_revoked())
        assert partition.saved_offset == offset


def test_a_slow_checkpoint_delays_a_rebalance_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxplain.kafka.worker.worker.HAND_OVER_S", 0.05)
    rig, stuck = Rig(Replica("drift"), STAGE), Event()
    rig.start(end=9)
    [partition] = rig.worker.context.assignment
    partition.next_offset = 7
    cast(Any, rig.worker.context.store).save = lambda _slot, _snapshot: stuck.wait(30.0)

    async def rebalance() -> None:
        await rig.worker.on_revoked()
        assert partition.saved_offset == 0
        stuck.set()

    asyncio.run(rebalance())


def test_a_worker_that_lost_its_partitions_exports_nothing_more_of_them() -> None:
    rig, stream = Rig(Replica("explainer"), STAGE), "features-0"
    rig.start()
    for record in (explanation("age", 10, 0.5), prediction(10)):
        rig.outbox.send(record, None, 0)
    rig.outbox.send_all()
    assert {"fluxplain_importance", "fluxplain_newest_seq", "fluxplain_loss"} < rig.labelled(stream)
    asyncio.run(rig.worker.on_revoked())
    assert rig.labelled(stream), "it may keep them"
    rig.worker.on_assigned([])
    assert not rig.labelled(stream)
    assert not rig.worker.status.partitions()


def test_paced_evaluations_are_sent_without_another_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fluxplain.kafka.worker.outbox.PACE_S", 1.0)
    rig = Rig(Replica("model"), STAGE)

    async def send() -> None:
        for seq in range(3):
            rig.outbox.send(answers(seq), None, 0)
            rig.worker._send()
        assert len(rig.recorder.sent) == 1
        while len(rig.recorder.sent) < 2:
            await asyncio.sleep(0.01)

    asyncio.run(send())
    assert [Evaluation.decode(value).seqs for _, value, *_ in rig.recorder.sent] == [[0], [1, 2]]


class Patient:
    """A stage whose state takes a while to pickle."""

    def __reduce__(self) -> Any:
        time.sleep(0.03)
        return Patient, ()


class CommittingDriver(FaustDriver):
    """A driver whose broker accepts every commit."""

    takes_commits = True

    async def commit(self, _offsets: Any) -> bool:
        return self.takes_commits


@pytest.mark.parametrize(("least", "then"), [(0.05, 0.6), (3600.0, 3600.0)])
def test_checkpoints_that_take_long_become_rarer_within_a_bound(least: float, then: float) -> None:
    config = Config(**{**SETTINGS, "checkpoint": {"interval_s": least}})
    rig = Rig(Replica("model"), cast(Any, Patient()), config=config)
    object.__setattr__(rig.worker.context, "driver", CommittingDriver(faust.App("test")))
    rig.start(end=5)
    committer = rig.worker.status.committer
    assert committer.interval_s == least
    rig.worker._assignment.get(*TP_0).next_offset = 5  # type: ignore[union-attr]
    assert asyncio.run(committer.commit())
    assert committer.interval_s == pytest.approx(then)


def test_all_shards_publish_the_same_notice_of_messages_deleted_unread() -> None:
    config = Config(**{**SETTINGS, "checkpoint": {"out_of_range": "earliest"}})
    published = []
    for shard, read_up_to in enumerate([40, 70]):
        checkpoint = Checkpoint(read_up_to, STAGE, Life(), Fence(), epoch=1)
        rig = Rig(Replica("model", shard=shard, shards=2), STAGE, checkpoint, config)
        assert rig.start(TP_0, earliest=100, end=150) == 100
        rig.outbox.send_all()
        published.append(rig.recorder.sent)
    assert published[0] == published[1]
    [(topic, value, _, _)] = published[0]
    assert topic == config.topic("changes")
    gap = Change.decode(value)
    assert (gap.kind, gap.seq) == ("gap", 99)


@pytest.mark.parametrize("topic", ["features", "observations"])
def test_only_the_join_role_may_name_the_origin_of_a_message(topic: str) -> None:
    """With a producer's own header, a dead letter would be about another message."""
    tp = TopicPartition(CONFIG.topic(topic), 0)
    rig = Rig(Replica("model"), ModelStage(CONFIG, str(tp)))
    rig.start(tp)
    headers = {ORIGIN: b"fluxplain.labels-9@77", ORIGIN_TIME: b"5", "traceparent": b"00-1"}
    forged = faust_message(tp, b"no JSON", {**headers, WRITER: JOIN.header})

    async def take() -> None:
        turn = await rig.worker._turn(forged)
        assert turn is not None
        turn.publish(turn.step())
        await turn.done()

    asyncio.run(take())
    rig.outbox.send_all()
    [letter] = [DeadLetter.decode(value) for _, value, _, _ in rig.recorder.sent]
    place = (letter.topic, letter.partition, letter.offset)
    assert place == ((tp.topic, 0, 0) if topic == "features" else ("fluxplain.labels", 9, 77))
    assert letter.stream == str(tp)


@pytest.mark.parametrize("is_own", [False, True])
def test_only_workers_may_name_the_time_of_the_origin(is_own: bool) -> None:
    forged = faust_message(TP_0, b"", {ORIGIN_TIME: b"5", "h": b"1"})
    taken = incoming_message(forged, is_own=is_own)
    assert taken.time == (5 if is_own else 1_500)
    assert taken.headers["h"] == b"1"


def test_an_unreadable_record_comes_with_the_reason() -> None:
    read = faust_message(TP_0, b"", {})
    read.value, read.headers = None, Unreadable("it is too large")
    taken = incoming_message(read, is_own=False)
    assert (taken.flaw, taken.headers) == ("it is too large", {})


def test_a_state_that_changes_while_its_checkpoint_is_written_is_saved_again() -> None:
    """Such as when an announced model takes over: no message may come that would be a reason."""
    rig = Rig(Replica("drift"), STAGE)
    rig.start()
    [partition] = rig.worker.context.assignment
    partition.next_offset = 5
    committer = rig.worker.status.committer
    prepared = committer._prepare(partition, aside=False)
    partition.must_save = True
    assert asyncio.run(committer._save(prepared))
    assert partition.must_save


@pytest.mark.parametrize("is_restored", [False, True])
def test_the_model_of_a_partition_is_timed_from_the_start(is_restored: bool) -> None:
    stage = ModelStage(CONFIG, "fluxplain.features-0")
    rig = Rig(Replica("model"), stage, Checkpoint(5, stage) if is_restored else None)
    assert rig.start(end=5) == (5 if is_restored else 0)
    assert stage.meter is rig.worker.context.metrics.model
