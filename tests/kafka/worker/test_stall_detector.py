"""Which samples of offsets mean that a worker makes no progress."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.worker.partition import PartitionProgress
from fluxplain.kafka.worker.stall_detector import ProgressSample, StallDetector

STALL_S = 10.0
INTERVAL_S = 5.0
T0, T1 = (TopicPartition("t", number) for number in (0, 1))


@pytest.fixture
def detector() -> StallDetector:
    return StallDetector(STALL_S)


def sample(now: float, next_offset: int, committed: int, end: int) -> ProgressSample:
    return ProgressSample(
        now, [PartitionProgress(T0, next_offset, committed)], {T0: end}, interval_s=INTERVAL_S
    )


WELL: dict[str, Callable[[int], ProgressSample]] = {
    "takes and commits": lambda now: sample(now, now, max(now - 4, 0), 1000),
    "has nothing to do": lambda now: sample(now, 7, 7, 7),
    "waits for its outputs, which has another limit": lambda now: replace(
        sample(now, 8, 7, 100), is_saving=now % 9 > 0
    ),
    "waits for a registry": lambda now: replace(sample(now, 8, 7, 100), is_held_up=now % 9 > 0),
    "has a broker that does not answer": lambda now: replace(
        sample(now, 7, 7, 100), ends=None if now % 9 else {T0: 100}
    ),
    "stands by while others commit": lambda now: ProgressSample(
        now, [], {T0: 1000}, committed={T0: now}
    ),
    "commits rarely, since its checkpoints take long": lambda now: replace(
        sample(now, now + 1, 60 * (now // 60), 1000), interval_s=60.0
    ),
    "slept": lambda now: sample(25 * now, 7, 7, 100),
}

STALLED: dict[str, tuple[int, Callable[[int], ProgressSample]]] = {
    "t-0 was taken for 10 s": (10, lambda now: sample(now, 7, 7, 8)),
    "t-0 was committed for 15 s": (15, lambda now: sample(now, 8 + now, 7, 100)),
    "of t-1 ": (
        10,
        lambda now: ProgressSample(
            now, [PartitionProgress(T0, now, now), PartitionProgress(T1, 3, 3)], {T0: 1000, T1: 4}
        ),
    ),
    # no worker takes the waiting messages, and this one has no partition
    "was committed": (
        15,
        lambda now: ProgressSample(now, [], {T0: 100}, committed={T0: 50}, interval_s=INTERVAL_S),
    ),
}


def reasons(detector: StallDetector, samples: Iterable[ProgressSample]) -> list[str | None]:
    found = []
    for each in samples:
        detector.see(each)
        found.append(detector.stalled())
    return found


@pytest.mark.parametrize("seen", WELL.values(), ids=list(WELL))
def test_no_stall_is_reported_if_a_worker(
    detector: StallDetector, seen: Callable[[int], ProgressSample]
) -> None:
    assert reasons(detector, map(seen, range(100))) == [None] * 100


@pytest.mark.parametrize("reason", STALLED)
def test_a_worker_without_progress_is_stalled(detector: StallDetector, reason: str) -> None:
    after, seen = STALLED[reason]
    *before, last = reasons(detector, map(seen, range(after + 1)))
    assert before == [None] * after
    assert reason in (last or "")


def test_a_worker_that_the_broker_refuses_for_long_is_stalled(detector: StallDetector) -> None:
    # let in again at 15
    samples = [
        ProgressSample(now, refusal=None if now == 15 else "wrong password") for now in range(30)
    ]
    late = [10 <= now < 15 or now >= 26 for now in range(30)]
    assert reasons(detector, samples) == ["wrong password" if each else None for each in late]


def test_a_log_that_stays_shorter_than_the_next_offset_is_reported(
    detector: StallDetector,
) -> None:
    for now, end in enumerate([9, 7, 7, 9, 7, 7]):
        detector.see(sample(now, 8, 8, end))
        assert detector.shortened is None
    detector.see(sample(6, 8, 8, 7))
    assert detector.shortened == (PartitionProgress(T0, 8, 8), 7)


def test_a_wait_for_a_model_is_no_stall_and_hides_none(
    detector: StallDetector,
) -> None:
    samples = [
        ProgressSample(
            now,
            [
                PartitionProgress(T0, 7, 7, waits_for="a model"),
                PartitionProgress(T1, min(now, 15), min(now, 15)),
            ],
            {T0: 1000, T1: 1000},
        )
        for now in range(30)
    ]
    found = reasons(detector, samples)
    assert [each is None for each in found] == [now < 25 for now in range(30)]
    assert "of t-1 was taken for 10 s" in (found[-1] or "")
    assert detector.lag == 993 + 985
