"""What somebody on call reads first."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from fluxplain.results.headline import Headline, Limits, Tone, headline
from fluxplain.results.pipeline_status import RoleStatus
from fluxplain.results.store import Store
from fluxplain.schemas import Change, Note
from tests.kit.records import (
    STREAM,
    change,
    drifting_store,
    explanation,
    loss_change,
    prediction,
    store_of,
)

LIMITS = Limits(recent=1000, patience_s=120.0)


def state(store: Store) -> Headline:
    return headline(store.streams[STREAM], store.status, limits=LIMITS, notes=store.notes)


def role(lag: int, idle_s: float, part: str = "model", waited_s: float = 0.0) -> RoleStatus:
    now = time.monotonic()
    return RoleStatus(part, "topic", lag, now - idle_s, part == "model", now - waited_s)


def test_it_says_what_the_model_relies_on_and_leaves_out_what_is_not_certain() -> None:
    values = {"age": (0.6, 0.01), "income": (0.3, 0.01), "noise": (0.1, 0.08)}
    records = [
        explanation(feature, 9, value, std_error=error)
        for feature, (value, error) in values.items()
    ]
    said = state(store_of([prediction(9), *records]))
    assert said.relies_on == "By iPFI, the model relies most on age (60 %) and income (30 %)"
    assert said.shares == pytest.approx({"age": 0.6, "income": 0.3})


def test_a_model_that_relies_on_nothing_certain_is_said_to() -> None:
    records = [explanation("age", 9, 0.01, std_error=0.01)]
    said = state(store_of([prediction(9), *records]))
    assert said.relies_on == "By iPFI, the model surely relies on no feature yet"


def test_the_largest_of_the_latest_changes_is_named_with_the_number_of_others() -> None:
    store = store_of([prediction(2000)])
    store.add(replace(change("small", 1500), effect_size=0.1))
    store.add(replace(change("large", 1400), effect_size=0.5, status="confirmed"))
    said = state(store)
    assert said.tone == "changed"
    assert said.change == (
        "Changed 600 records ago: iPFI of large rose from 0.1 to 0.4 (confirmed), "
        "with 1 other change"
    )


@pytest.mark.parametrize(
    ("losses", "own", "expected"),
    [
        ([], (0.2, 0.21), "; the loss does not show it"),
        ([], (0.069, 1.3), "; the loss rose"),
        ([], (0.4, 0.2), "; the loss fell"),
        ([replace(loss_change(1800), direction="fell")], (0.228, 1.15), "; the loss rose"),
        (
            [
                replace(loss_change(1510), direction="rose"),
                replace(loss_change(1800), direction="fell"),
            ],
            (0.2, 0.2),
            "; the loss rose",
        ),
        ([], (None, None), "to 0.4"),
        ([replace(loss_change(1450), direction="rose")], (0.2, 0.2), "; the loss rose"),
        ([replace(loss_change(1450), direction="fell")], (None, None), "; the loss fell"),
        ([replace(loss_change(100), direction="rose")], (0.2, 0.2), "; the loss does not show it"),
    ],
)
def test_it_says_whether_the_loss_shows_the_change(
    losses: list[Change], own: tuple[float | None, float | None], expected: str
) -> None:
    store = store_of([prediction(seq) for seq in range(1900, 2000)])
    store.add(replace(change("age", 1500), loss_before=own[0], loss_after=own[1]))
    for each in losses:
        store.add(each)
    assert state(store).change.partition(", with")[0].endswith(expected) or state(
        store
    ).change.endswith(expected)


def member(feature: str, seq: int) -> Change:
    told = replace(change(feature, seq), incident="features-0@8500", effect_size=0.03)
    return replace(told, loss_before=0.2, loss_after=0.2)


def test_a_loss_that_rose_comes_before_a_small_change_of_an_older_incident() -> None:
    rose = replace(loss_change(9700), direction="rose")
    store = store_of([prediction(9750), member("b", 8500), member("a", 9300), rose])
    assert state(store).change_id == rose.id
    assert state(store).change.startswith("Changed 50 records ago: the loss rose from 0.2 to 0.9")
    assert "does not show" not in state(store).change


def test_the_loss_is_not_said_to_hide_a_change_if_it_rose_in_another_incident() -> None:
    large = replace(member("c", 9640), loss_after=0.21, effect_size=0.3)
    rose = replace(loss_change(9600), direction="rose", before=0.88)
    store = store_of([prediction(9750), member("b", 8500), rose, large])
    assert state(store).change.endswith("iPFI of c rose from 0.1 to 0.4, with 1 other change")
    store = store_of([prediction(9750), member("b", 8500), large])
    assert state(store).change.endswith("; the loss does not show it")


def test_of_equally_urgent_incidents_the_newest_is_named() -> None:
    older, newer = (
        replace(change(name, seq), incident=f"features-0@{seq}", effect_size=effect)
        for name, seq, effect in (("older", 9100, 0.9), ("newer", 9700, 0.5))
    )
    assert state(store_of([prediction(9750), older, newer])).change_id == newer.id


def test_without_labels_nothing_is_said_of_the_loss() -> None:
    store = store_of([prediction(2000, loss=None)])
    store.add(change("age", 1500))
    assert "loss" not in state(store).change


@pytest.mark.parametrize(
    "old",
    [
        change("age", 500),
        replace(change("age", 1900), learning=True),
    ],
)
def test_old_changes_and_those_of_a_learning_model_leave_it_calm(old: Change) -> None:
    store = store_of([prediction(2000)])
    store.add(old)
    said = state(store)
    assert said.tone == "calm"
    assert said.change.startswith("No change for ")
    assert "iPFI of age rose" in said.change


def test_a_change_that_did_not_last_is_no_news() -> None:
    store = store_of([prediction(2000)])
    noticed = change("age", 1500)
    store.add(replace(noticed, status="noticed"))
    assert state(store).tone == "changed"
    store.add(replace(noticed, status="transient", status_seq=2000))
    assert state(store).change == "No lasting change so far"
    assert state(store).tone == "calm"


def test_the_time_without_a_change_counts_from_the_newest_one_that_is_shown() -> None:
    concept = replace(change("age", 5051), incident="features-0@5051", effect_size=1.2)
    broken = replace(change("age", 6047), kind="input", method=None, effect_size=0.9)
    store = store_of([prediction(8527), concept, broken])
    assert state(store).change.startswith("No change for 2,480 records; the last: ")
    store.add(replace(change("b", 7000), status="transient"))
    assert state(store).change.startswith("No lasting change for 2,480 records; the last: ")


def test_the_last_change_is_the_largest_of_the_last_incident() -> None:
    older = replace(change("older", 5000), incident="features-0@5000", effect_size=1.9)
    large, small = (
        replace(change(name, seq), incident="features-0@5900", effect_size=effect)
        for name, seq, effect in (("large", 5900, 0.8), ("small", 5910, 0.2))
    )
    store = store_of([prediction(9000), older, large, small, loss_change(5920)])
    assert "the last: iPFI of large rose" in state(store).change


def minutes_ago(minutes: float) -> int:
    return int(1e3 * (time.time() - 60.0 * minutes))


def test_the_lag_of_several_streams_is_compared_with_the_rate_of_all() -> None:
    store, now = Store(), time.monotonic()
    for i in range(300):
        store.add(prediction(i), 0, now - 3.0 + i / 100.0)
        store.add(prediction(i, stream="features-1"), 1, now - 3.0 + i / 100.0)
    store.status.roles = [role(20_000, 5.0)]  # 100 seconds at 200 a second
    assert state(store).tone == "calm"


def stopped(store: Store) -> None:
    store.status.roles = [role(0, 1200.0), role(7, 1200.0, "drift")]


def quiet(store: Store) -> None:
    store.status.roles = [role(0, 1200.0)]
    store.streams[STREAM].freshness.note(minutes_ago(20.0), None)


def behind(store: Store) -> None:
    now = time.monotonic()
    for i in range(300):
        store.add(prediction(6000 + i), 0, now - 3.0 + i / 100.0)
    store.status.roles = [role(60_000, 5.0)]


def loading(store: Store) -> None:
    store.status.read, store.status.to_read = 30, 100


def refused(store: Store) -> None:
    store.status.trouble = "no answer from localhost:9092"


def working(store: Store) -> None:
    store.status.roles = [role(50, 20.0), role(7, 20.0, "drift")]
    store.streams[STREAM].freshness.note(minutes_ago(0.1), None)


def unanswered(store: Store) -> None:
    store.status.has_roles = True


def waiting_since_before(store: Store) -> None:
    """The page has just begun to look: nothing has moved for as long as it looks."""
    store.status.freshness.note(minutes_ago(20.0), None)
    store.status.roles = [role(40, 16.0, waited_s=3000.0)]


def just_looked_at(store: Store) -> None:
    store.status.freshness.note(minutes_ago(7.0), None)
    store.status.roles = [role(300, 1.0, waited_s=3000.0), role(0, 1.0, "drift")]


def a_later_role_just_looked_at(store: Store) -> None:
    """Results of the model come, but nobody knows yet whether the drift role moves."""
    store.status.freshness.note(minutes_ago(0.1), None)
    store.status.roles = [role(3, 1.0), role(300, 1.0, "drift", waited_s=3000.0)]


def stopped_while_no_message_came(store: Store) -> None:
    """The first message after a pause of 20 minutes came 20 seconds ago."""
    store.status.freshness.note(minutes_ago(20.0), None)
    store.status.roles = [role(1, 20.0)]


def one_that_has_just_come(store: Store) -> None:
    store.status.freshness.note(minutes_ago(20.0), None)
    store.status.roles = [role(1, 5.0)]


def sharded(store: Store) -> None:
    """Four shards read the same 8,000 records, 80 seconds at 100 a second."""
    now = time.monotonic()
    for i in range(300):
        store.add(prediction(6000 + i), 0, now - 3.0 + i / 100.0)
    store.status.roles = [role(8_000, 5.0) for _ in range(4)]


def slow_clock(store: Store) -> None:
    store.streams[STREAM].freshness.note(minutes_ago(20.0), time.monotonic())
    store.status.roles = [role(0, 20.0)]


@pytest.mark.parametrize(
    ("happen", "tone", "pipeline"),
    [
        (stopped, "lost", "Stopped: no progress for 20 minutes; drift has 7 messages to go"),
        (quiet, "quiet", "No new record for 20 minutes, and none waits"),
        (behind, "late", "10 minutes behind: 60,000 records to go"),
        (loading, "waiting", "Reading the history: 30 %"),
        (refused, "lost", "Unknown whether the pipeline keeps up: no answer from localhost:9092"),
        (working, "calm", "The pipeline keeps up"),
        (unanswered, "waiting", "Asking the broker how far the roles are"),
        (
            waiting_since_before,
            "lost",
            "Stopped: no progress for 20 minutes; model has 40 messages to go",
        ),
        (just_looked_at, "late", "No result for 7 minutes, and model has 300 messages to go"),
        (
            a_later_role_just_looked_at,
            "waiting",
            "Not known yet whether the pipeline keeps up: drift has 300 messages to go",
        ),
        (
            stopped_while_no_message_came,
            "waiting",
            "No result for 20 seconds, and model has 1 message to go",
        ),
        (one_that_has_just_come, "calm", "The pipeline keeps up"),
        (sharded, "calm", "The pipeline keeps up"),
        (slow_clock, "calm", "The pipeline keeps up"),
    ],
)
def test_it_tells_a_stopped_pipeline_from_a_quiet_stream_and_from_one_that_is_behind(
    happen: Callable[[Store], None], tone: Tone, pipeline: str
) -> None:
    store = drifting_store()
    store.add(prediction(5000))
    happen(store)
    said = state(store)
    assert said.tone == tone
    if " behind" in pipeline:  # the rate is measured
        assert said.pipeline.endswith(pipeline.partition(" behind")[2])
        assert "minutes behind" in said.pipeline
    else:
        assert said.pipeline == pipeline


def test_a_change_never_hides_that_the_pipeline_stopped() -> None:
    store = store_of([prediction(2000), change("age", 1999)])
    stopped(store)
    assert state(store).tone == "lost"


def test_names_cannot_control_a_terminal() -> None:
    said = state(store_of([prediction(9), explanation("a\x1b[2J", 9, 0.5)]))
    assert said.text.isprintable()


def test_what_is_acknowledged_or_muted_is_no_news() -> None:
    store = store_of([prediction(2000)])
    small, large = (
        replace(change(name, 1500), effect_size=size)
        for name, size in (("small", 0.1), ("large", 0.5))
    )
    store.add(small)
    store.add(large)
    at = "2026-03-01T12:00:00Z"
    store.add(Note("acknowledged", at, change=large.id, stream=STREAM))
    said = state(store)
    assert (said.tone, said.change_id) == ("changed", small.id)
    assert "other change" not in said.change
    store.add(Note("muted", at, feature="small", text="noise"))
    said = state(store)
    assert said.tone == "calm"
    assert said.change == (
        "No change for 500 records; the last, acknowledged: iPFI of large rose from 0.1 to 0.4"
    )
    store.add(Note("muted", at, feature="large", text="noise"))
    assert state(store).change == "No change so far, apart from those of muted features"
    store.add(Note("unmuted", at, feature="small"))
    assert state(store).change_id == small.id
