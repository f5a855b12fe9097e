"""How records leave a worker: runs, sizes, keys and partitions."""

import logging
import time
from dataclasses import replace
from typing import Any, cast

import pytest

from fluxplain.config import Config
from fluxplain.explain.method import Answers
from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.worker.outbox import (
    MAX_GATHERED,
    PACE_S,
    RUN_BYTES,
    RUN_LENGTH,
    DeadLetterLog,
    Outbox,
)
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.schemas import Change, Evaluation, Explanation, Prediction, Record
from fluxplain.stages.evaluated import Evaluated
from tests.kit.recorder import Recorder, answers
from tests.kit.records import STREAM, loss_change
from tests.kit.settings import SETTINGS
from tests.kit.support import message


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def outbox(recorder: Recorder) -> Outbox:
    return Outbox(Config(**SETTINGS), recorder, partitions=4)  # type: ignore[arg-type]


PREDICTION = Prediction("s-2", 0, None, None, None, 1, [0, 1], [0.5, 0.5], 1, 0.25)


def runs(recorder: Recorder) -> list[tuple[str, list[int]]]:
    """Return feature and seqs of each message of evaluations."""
    decoded = [Evaluation.decode(value) for _, value, _, _ in recorder.sent]
    return [(run.feature, run.seqs) for run in decoded]


def of_both(one: Evaluated, other: Evaluated) -> Evaluated:
    """Return the answers about one observation, of the features of both."""
    [answer], [more] = one.answers.values(), other.answers.values()
    merged = Answers(
        [*answer.names, *more.names],
        answer.labels,
        [*answer.blocks, *more.blocks],
        [*(answer.points or ()), *(more.points or ())],
    )
    fields = ("methods", "previous_seqs", "classes", "coverage", "x")
    both: dict[str, Any] = {n: {**getattr(one, n), **getattr(other, n)} for n in fields}
    return replace(one, answers={"ipdp": merged}, **both)


def publish(outbox: Outbox, *records: Record, key: bytes | None = None, partition: int = 0) -> None:
    for record in records:
        outbox.send(record, key, partition)
    outbox.send_all()


def test_consecutive_evaluations_of_a_feature_become_one_message(
    outbox: Outbox, recorder: Recorder
) -> None:
    for seq in range(10):
        outbox.send(of_both(answers(seq), answers(seq, "loan")), b"tenant", 0)
    assert not recorder.sent
    outbox.send_all()
    assert runs(recorder) == [("age", list(range(10))), ("loan", list(range(10)))]
    assert [key for _, _, key, _ in recorder.sent] == [b"age", b"loan"]


def test_evaluations_are_paced_and_other_records_are_not(
    outbox: Outbox, recorder: Recorder
) -> None:
    outbox.send(answers(0), None, 0)
    assert outbox.send_due(time.monotonic()) == 0.0, "the first ones need not wait"
    for seq in 1, 2:
        outbox.send(answers(seq), None, 0)
        outbox.send(PREDICTION, None, 0)
        now = time.monotonic()
        assert 0.0 < outbox.send_due(now) <= PACE_S
    topics = [topic.removeprefix("fluxplain.") for topic, *_ in recorder.sent]
    assert topics == ["evaluations", "predictions", "predictions"]
    assert outbox.send_due(now + PACE_S) == 0.0
    del recorder.sent[1:3]
    assert runs(recorder) == [("age", [0]), ("age", [1, 2])]


def test_a_run_ends_at_a_gap_at_new_classes_and_when_it_is_long(
    outbox: Outbox, recorder: Recorder
) -> None:
    sequence = [answers(0), answers(1), answers(5), answers(6, labels=(0, 1, 2))]
    sequence += [answers(seq, labels=(0, 1, 2)) for seq in range(7, 7 + RUN_LENGTH)]
    publish(outbox, *sequence)
    assert [len(seqs) for _, seqs in runs(recorder)] == [2, 1, RUN_LENGTH - 3, 4]


def test_what_a_revoked_partition_published_last_is_never_sent(
    outbox: Outbox, recorder: Recorder
) -> None:
    def owner(partition: int, epoch: int) -> AssignedPartition:
        slot = Slot("model", "features", partition)
        return AssignedPartition(slot, cast(Any, None), 0, 0, 0, epoch)

    revoked, stays, again = owner(0, 7), owner(1, 8), owner(0, 9)
    for partition, seq in ((revoked, 0), (stays, 3), (revoked, 1)):
        for record in answers(seq), loss_change(seq):
            own = replace(record, stream=f"features-{partition.slot.partition}")
            outbox.send(own, None, partition.slot.partition, owner=partition)
    revoked.is_held = False
    outbox.send(replace(answers(1), stream="features-0"), None, 0, owner=again)
    outbox.send_all_if_old(time.monotonic() + 1000.0)
    outbox.send_all()
    sent = [topic.removeprefix("fluxplain.") for topic, *_ in recorder.sent]
    assert sent == ["changes", "evaluations", "evaluations"]
    of_evaluations = [Evaluation.decode(value) for _, value, *_ in recorder.sent[1:]]
    assert {(run.stream, *run.seqs) for run in of_evaluations} == {
        ("features-0", 1),
        ("features-1", 3),
    }


def test_a_run_that_would_be_too_large_is_split(outbox: Outbox, recorder: Recorder) -> None:
    publish(outbox, *(answers(seq, points=3_000) for seq in range(20)))
    assert max(len(value) for _, value, _, _ in recorder.sent) <= RUN_BYTES
    seqs = [seq for _, run in runs(recorder) for seq in run]
    assert seqs == list(range(20)), "in order, and each once"


def test_features_are_dealt_to_partitions_in_turn(outbox: Outbox, recorder: Recorder) -> None:
    publish(outbox, *(answers(0, feature) for feature in SETTINGS["features"]))
    assert [place for *_, place in recorder.sent] == [i % 4 for i in range(len(recorder.sent))]
    assert len(recorder.sent) == len(SETTINGS["features"])


@pytest.mark.parametrize(("key", "place"), [(None, 2), (b"tenant", None)])
def test_predictions_follow_their_observation(
    outbox: Outbox, recorder: Recorder, key: bytes | None, place: int | None
) -> None:
    publish(outbox, PREDICTION, key=key, partition=2)
    assert recorder.sent == [("fluxplain.predictions", PREDICTION.encode(), key, place)]


def test_explanations_and_changes_are_keyed_by_feature(outbox: Outbox, recorder: Recorder) -> None:
    """All explanations of a stream are in one partition, since changes say how features rank."""
    explanation = Explanation("s-6", "loan", "ipfi", 9, None, None, 0.01, 10, 0.5, 0.1, [9], [0.5])
    notice = Change.notice(kind="cold-start", stream="s-0", seq=5, detail="…")
    outbox.send(explanation, b"evaluation's", 1)
    outbox.send(notice, None, 1)
    publish(outbox, loss_change(7), key=b"observation's", partition=1)
    # those of one loss go to one partition, and so stay in order
    assert [(key, place) for _, _, key, place in recorder.sent] == [
        (b"loan", 6 % 4),  # also if the topic has more partitions by now
        (b"s-0", None),
        (STREAM.encode(), None),
    ]


def test_records_wait_for_others_but_not_long_and_not_for_many(
    outbox: Outbox, recorder: Recorder
) -> None:
    begin = time.monotonic()
    outbox.send(PREDICTION, None, 0)
    outbox.send_all_if_old(begin)
    assert not recorder.sent
    outbox.send_all_if_old(begin + 1.0)
    assert len(recorder.sent) == 1
    for _ in range(MAX_GATHERED):
        outbox.send(PREDICTION, None, 0)
    assert len(recorder.sent) == 1 + MAX_GATHERED


def test_the_first_dead_letter_is_logged_and_of_many_others_the_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    letters, long = DeadLetterLog(), "x" * 10_000
    with caplog.at_level(logging.WARNING, "fluxplain.worker"):
        for i in range(1000):
            letters.see("model", message(i, {}).dead_letter(f"{i} {long}"), now=i / 10)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("model: 1 dead letters; the latest: 0 xxx")
    assert second.startswith("model: 600 dead letters; the latest: 600 xxx")
    assert len(second) < 400
