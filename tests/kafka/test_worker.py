"""What a worker takes, keeps and forgets when partitions come and go."""

import asyncio
from typing import Any, cast

import faust
import pytest
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import Config
from pipeline.kafka.batches import Unreadable
from pipeline.kafka.checkpoints import Checkpoint, Slot
from pipeline.kafka.lives import Life
from pipeline.kafka.metrics.worker import WorkerMetrics
from pipeline.kafka.outbox import Outbox
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.register import Registered
from pipeline.kafka.worker import SEEK_AGAIN_S, Partition, RoleWorker, incoming_message
from pipeline.kafka.writers import WRITER, Begin, Fence, Writer
from pipeline.parts import Part
from pipeline.stages import DriftStage, ModelStage, Stage
from pipeline.stages.base import ORIGIN, ORIGIN_TIME
from schemas import Change, DeadLetter
from tests.behaviour.conftest import SETTINGS
from tests.kafka.test_outbox import Recorder
from tests.monitor.records import explanation, prediction
from tests.support import PROPERTY

CONFIG = Config(**SETTINGS)

STAGE = DriftStage(CONFIG)

TP_0 = TP("fluxplain.features", 0)


class OneCheckpoint:
    """Keeps what it is made with."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self.checkpoint = checkpoint

    def load(self, _slot: Slot, _begin: Begin) -> Checkpoint | None:
        return self.checkpoint


JOIN = Writer("join fluxplain.labels-9", 2)
"""An owner that the register knows."""


class Claims:
    """Counts claims as the register does, without a broker."""

    def __init__(self) -> None:
        self.number = 1

    def claim(self, slots: list[str]) -> dict[str, int]:
        self.number += len(slots)
        return dict.fromkeys(slots, self.number)

    def begin(self, slot: str, begin: Begin) -> None:
        assert begin.epoch <= self.number, slot

    def is_life(self, number: int) -> bool:
        return number <= self.number

    def read(self, number: int | None = None) -> Registered:
        return Registered(number=1, epochs={JOIN.slot: JOIN.epoch})


def worker_of(
    part: Part,
    recorder: Recorder,
    stage: Stage,
    store: OneCheckpoint | None = None,
    config: Config = CONFIG,
) -> RoleWorker:
    """Return a worker without a broker."""
    app = faust.App(f"test-worker-{part}")
    metrics = WorkerMetrics(config, part, app)
    return RoleWorker(
        app,
        config,
        part,
        make_stage=lambda _topic, _partition: stage,
        store=cast(Any, store or OneCheckpoint()),
        outbox=Outbox(config, cast(RecordProducer, recorder), 4, metrics.published.observe),
        register=cast(Any, Claims()),
        registered=1,
        metrics=metrics,
    )


async def started(worker: RoleWorker, tp: TP, earliest: int, end: int) -> int | None:
    """Claim and start a partition, as the transport does."""
    await worker.claim([tp])
    return await worker.start(tp, earliest, end)


def faust_message(tp: TP, value: bytes, headers: dict[str, bytes]) -> faust.types.Message:
    """Return the first message of a partition, as Faust reads it without a rebalance before."""
    named = list(headers.items())
    return faust.types.Message(
        *(tp.topic, tp.partition, 0),
        timestamp=1.5,
        timestamp_type=0,
        headers=named,
        key=None,
        value=value,
        checksum=None,
        tp=tp,
        generation_id=0,
    )


def labelled(worker: RoleWorker, stream: str) -> list[str]:
    """Return the metrics that tell of a stream."""
    return [
        sample.name
        for family in worker.metrics.registry.collect()
        for sample in family.samples
        if sample.labels.get("stream") == stream
    ]


def deliver(log: list[int], start: int, stale: list[int]) -> list[int]:
    """Return the offsets done when stale messages come before those after the seek."""
    partition = Partition(Slot("drift", "explanations", 0), STAGE, start, start, start)
    done = []
    queue = list(stale) + [offset for offset in log if offset >= start]
    seeks = 0
    while queue:
        offset = queue.pop(0)
        if not partition.accepts(offset):
            if partition.must_seek(offset, now=0.0):
                seeks += 1
                # what was fetched before the seek still comes first
                queue += [offset for offset in log if offset >= start]
            continue
        if offset >= partition.next_offset:
            done.append(offset)
            partition.next_offset = offset + 1
    assert seeks <= 2, "a seek must not bring on another for ever"
    return done


@PROPERTY
@given(
    log=st.sets(st.integers(0, 60), min_size=1).map(sorted),
    start=st.integers(0, 60),
    ahead=st.integers(0, 40),
    n=st.integers(0, 10),
)
def test_every_message_from_the_checkpoint_on_is_done_once_and_in_order(
    log: list[int], start: int, ahead: int, n: int
) -> None:
    stale = [offset for offset in log if offset >= start + ahead][:n]
    assert deliver(log, start, stale) == [offset for offset in log if offset >= start]


def test_a_log_whose_beginning_moves_on_while_it_is_asked_for_again_is_read_on() -> None:
    partition = Partition(Slot("drift", "explanations", 0), STAGE, 150, 150, 150)
    assert not partition.accepts(160)
    assert partition.must_seek(160, now=0.0)
    # 150 to 169 were deleted by now; or was 170 on its way before the seek?
    assert not partition.accepts(170)
    assert not partition.must_seek(170, now=0.1)
    assert not partition.must_seek_again(now=0.1)
    assert partition.must_seek_again(now=SEEK_AGAIN_S)
    assert not partition.accepts(170)
    assert partition.must_seek(170, now=SEEK_AGAIN_S)
    assert partition.accepts(170)
    assert not partition.must_seek_again(now=2 * SEEK_AGAIN_S)


def test_what_is_asked_for_again_is_asked_for_until_it_comes() -> None:
    partition = Partition(Slot("drift", "explanations", 0), STAGE, 150, 150, 150)
    assert not partition.must_seek_again(now=0.0)
    assert partition.accepts(150)
    partition.next_offset = 151
    partition.lost_step(now=0.0)
    for now in (SEEK_AGAIN_S, 2 * SEEK_AGAIN_S):
        assert partition.must_seek_again(now)
        assert not partition.must_seek_again(now)
    assert partition.accepts(151)
    assert not partition.must_seek_again(now=3 * SEEK_AGAIN_S)


def test_a_worker_that_lost_its_partitions_tells_nothing_more_of_them() -> None:
    recorder = Recorder()
    worker = worker_of(Part("explainer"), recorder, STAGE)
    asyncio.run(started(worker, TP_0, 0, 0))
    outbox, stream = worker._outbox, "features-0"
    for record in (explanation("age", 10, 0.5), prediction(10)):
        outbox.send(record, None, 0)
    outbox.send_all()
    told = {"fluxplain_importance", "fluxplain_newest_seq", "fluxplain_loss"}
    assert told < set(labelled(worker, stream))
    sent = len(recorder.sent)
    outbox.send(explanation("age", 20, 0.75), None, 0)  # waits for others, and then is too late
    worker.revoke()
    outbox.send_all()
    assert len(recorder.sent) == sent
    assert not labelled(worker, stream)
    assert not worker.standings()


def test_of_messages_that_were_deleted_unread_all_shards_publish_the_same() -> None:
    config = Config(**{**SETTINGS, "checkpoint": {"out_of_range": "earliest"}})
    published = []
    for shard, read_up_to in enumerate([40, 70]):
        recorder = Recorder()
        checkpoint = Checkpoint(read_up_to, STAGE, Life(), Fence(), epoch=1)
        part = Part("model", shard=shard, shards=2)
        worker = worker_of(part, recorder, STAGE, OneCheckpoint(checkpoint), config)
        assert asyncio.run(started(worker, TP_0, earliest=100, end=150)) == 100
        worker._outbox.send_all()
        published.append(recorder.sent)
    assert published[0] == published[1]
    [(topic, value, _, _)] = published[0]
    assert topic == config.topic("changes")
    gap = Change.decode(value)
    assert (gap.kind, gap.seq) == ("gap", 99)


@pytest.mark.parametrize("topic", ["features", "observations"])
def test_only_who_joins_topics_may_say_where_a_message_is_from(topic: str) -> None:
    """A producer's own header would make a dead letter be of another message."""
    recorder, tp = Recorder(), TP(CONFIG.topic(topic), 0)
    worker = worker_of(Part("model"), recorder, ModelStage(CONFIG, f"{tp.topic}-0"))
    asyncio.run(started(worker, tp, 0, 0))
    headers = {ORIGIN: b"fluxplain.labels-9@77", ORIGIN_TIME: b"5", "traceparent": b"00-1"}
    headers[WRITER] = JOIN.header
    forged = faust_message(tp, value=b"no JSON", headers=headers)
    asyncio.run(worker._step(forged))
    worker._outbox.send_all()
    [letter] = [DeadLetter.decode(value) for _, value, _, _ in recorder.sent]
    place = (letter.topic, letter.partition, letter.offset)
    assert place == ((tp.topic, 0, 0) if topic == "features" else ("fluxplain.labels", 9, 77))
    assert letter.stream == f"{tp.topic}-0"


@pytest.mark.parametrize("topic", ["features", "observations"])
def test_nor_may_another_say_when_it_was_written(topic: str) -> None:
    forged = faust_message(TP(topic, 0), value=b"", headers={ORIGIN_TIME: b"5", "h": b"1"})
    taken = incoming_message(forged, is_own=topic == "observations")
    assert taken.time == (1_500 if topic == "features" else 5)
    assert taken.headers["h"] == b"1"


def test_a_record_that_cannot_be_read_comes_with_the_reason() -> None:
    read = faust_message(TP_0, value=b"", headers={})
    read.value, read.headers = None, Unreadable("it is too large")
    taken = incoming_message(read, is_own=False)
    assert (taken.flaw, taken.headers) == ("it is too large", {})


@pytest.mark.parametrize("is_restored", [False, True])
def test_the_model_of_a_partition_is_timed_from_the_start(is_restored: bool) -> None:
    stage = ModelStage(CONFIG, "fluxplain.features-0")
    store = OneCheckpoint(Checkpoint(5, stage) if is_restored else None)
    worker = worker_of(Part("model"), Recorder(), stage, store)
    assert asyncio.run(started(worker, TP_0, 0, 5)) == (5 if is_restored else 0)
    assert stage.meter is worker.metrics.model
