"""The store's memory is bounded, whatever others write."""

import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.results import duplicates, performance, store
from fluxplain.results.store import Store
from fluxplain.schemas import Change, Record
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.record import Value
from tests.kit import records as plain
from tests.kit.records import letter
from tests.kit.support import PROPERTY
from tests.monitor.dashboard.stream import STREAM, change, explanation, records


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a short stream reaches."""
    monkeypatch.setattr(store, "MAX_POINTS", 40)
    monkeypatch.setattr(store, "MAX_CURVE_BYTES", 9 * 4000)
    monkeypatch.setattr(store, "MAX_CHANGES", 20)
    monkeypatch.setattr(store, "MAX_STORY_BYTES", 20_000)
    monkeypatch.setattr(duplicates, "MAX_LETTERS", 50)
    monkeypatch.setattr(performance, "MAX_BUCKETS", 40)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_memory_does_not_grow_with_the_stream() -> None:
    tracemalloc.start()
    try:
        known, sizes = Store(), []
        for block in range(12):
            for i, record in enumerate(records(500, first=500 * block, half=3000)):
                known.add(record, 0, now=500.0 * block + i)
            for seq in range(500 * block, 500 * block + 500, 10):
                known.add(change("f1", seq, "ipfi"))
                known.add(letter(seq))
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert known.streams[STREAM].records == 6000
    assert known.streams[STREAM].change_count > 500
    # it goes up and down: what is thinned grows again
    assert max(sizes[6:]) < 1.1 * max(sizes[:6])


LONG = "x" * 100_000

PDP = explanation(0, 0, 1000, random.Random(1), method="ipdp")

ICE = Ice(seq=0, grid=[0.0, 1.0], effect=[0.0, 1.0])

REASONS = plain.reasons(0)

DRIFT = change("f0", 0, "ipfi")

LETTER = letter(0)

HOSTILE: dict[str, tuple[Callable[[int], Record], str | None]] = {
    "streams": (lambda i: replace(PDP, stream=f"s-{i}"), store.NO_ROOM),
    "features": (lambda i: replace(PDP, feature=f"x{i}"), store.NO_ROOM),
    "rates": (lambda i: replace(PDP, alpha=1.0 / (i + 2)), store.NO_ROOM),
    "long streams": (lambda i: replace(PDP, stream=f"{LONG}-{i}"), store.UNFIT),
    "long features": (lambda i: replace(PDP, feature=f"{LONG}{i}"), store.UNFIT),
    "offsets": (lambda i: replace(PDP, seq=2**64 - 1 - i), store.UNFIT),
    "negative offsets": (lambda i: replace(PDP, seq=-1 - i), store.UNFIT),
    "large values": (lambda i: replace(PDP, seq=i, value=1e300), store.UNFIT),
    "large errors": (lambda i: replace(PDP, seq=i, std_error=float("inf")), store.UNFIT),
    "grids": (
        lambda i: replace(PDP, seq=i, grid=[*range(600)], effect=[float(i)] * 600),
        store.NO_CURVE,
    ),
    "texts in grids": (
        lambda i: replace(PDP, seq=i, grid=[f"{LONG}{i}"], effect=[1.0], ice=None),
        store.NO_CURVE,
    ),
    "classes": (
        lambda i: replace(PDP, seq=i, classes=[*range(300)], effect=[[1.0] * 5] * 300, ice=None),
        store.NO_CURVE,
    ),
    "single observations": (lambda i: replace(PDP, seq=i, ice=[ICE] * 150), store.NO_CURVE),
    "curves of another length": (lambda i: replace(PDP, seq=i, effect=[1.0]), store.NO_CURVE),
    "curves of many features": (
        lambda i: replace(PDP, seq=i, feature=f"x{i % 40}", grid=[*range(100)], effect=[1.0] * 100),
        None,
    ),
    "reasons' streams": (lambda i: replace(REASONS, stream=f"s-{i}"), store.NO_ROOM),
    "large contributions": (
        lambda i: replace(REASONS, seq=i, contributions=[1e300, 0.0]),
        store.UNFIT,
    ),
    "long features of reasons": (lambda i: replace(REASONS, seq=i, names=[LONG, f"{i}"]), None),
    "labels of reasons": (lambda i: replace(REASONS, label=f"{i}" * 200), None),
    "changes": (lambda i: replace(DRIFT, feature=f"x{i}", id=f"{i}"), store.NO_ROOM),
    "changes' streams": (lambda i: replace(DRIFT, stream=f"s-{i}"), store.NO_ROOM),
    "long sentences": (lambda i: replace(DRIFT, seq=i, id=f"{i}", detail=f"{LONG}{i}"), None),
    "long times": (lambda i: replace(DRIFT, seq=i, id=f"{i}", ts=f"{LONG}{i}"), None),
    "long identities": (lambda i: replace(DRIFT, seq=i, id=f"{LONG}{i}"), store.UNFIT),
    "long incidents": (lambda i: replace(DRIFT, seq=i, incident=f"{LONG}{i}"), store.UNFIT),
    "long notices": (
        lambda i: Change.notice(kind="gap", stream="s-0", seq=i, detail=f"{LONG}{i}"),
        None,
    ),
    "letters' topics": (lambda i: replace(LETTER, topic=f"{LONG}{i}"), None),
    "letters' partitions": (lambda i: replace(LETTER, partition=i), None),
    "long keys": (lambda i: replace(LETTER, offset=i, key=f"{LONG}{i}"), None),
    "long reasons": (lambda i: replace(LETTER, offset=i, reason=f"{LONG}{i}"), None),
}


@pytest.mark.sampled(10)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("record", "why"), HOSTILE.values(), ids=HOSTILE)
def test_what_others_wrote_does_not_fill_the_memory(
    record: Callable[[int], Record], why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_CURVE_BYTES", 5_000)
    monkeypatch.setattr(store, "MAX_REASON_BYTES", 5_000)
    monkeypatch.setattr(store, "MAX_SERIES", 50)
    monkeypatch.setattr(store, "MAX_STREAMS", 4)
    tracemalloc.start()
    try:
        known, sizes = Store(), []
        for i in range(200):
            known.add(record(i))
            if i % 100 == 99:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[0] < 300_000
    assert sizes[1] < sizes[0] + 10_000
    assert not why or why in known.left_out


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([0.1, 0.2]), st.integers(1, 80)), max_size=400
    )
)
@settings(PROPERTY, max_examples=40)
def test_all_points_and_curves_never_take_more_than_their_room(
    added: list[tuple[int, float, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "MAX_ALL_POINTS", 200)
        patch.setattr(store, "MAX_CURVE_BYTES", 5_000)
        known = Store()
        for seq, (feature, alpha, points) in enumerate(added):
            grid: list[Value] = [float(i) for i in range(points)]
            curve = replace(PDP, grid=grid, effect=[0.5] * points, ice=[ICE] * (points % 7))
            known.add(replace(curve, feature=f"x{feature}", alpha=alpha, seq=seq))
            stream = known.streams[STREAM]
            series = [each for found in stream.series.values() for each in found.values()]
            assert sum(map(len, series)) <= 200
            assert all(series), "each has its newest point"
            assert sum(curves.size for curves in stream.curves.values()) <= 5_000
