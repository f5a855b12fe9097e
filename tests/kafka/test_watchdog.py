"""When a worker counts as one that does not go on."""

from dataclasses import replace

from pipeline.kafka.stalls import Progress, Sight
from pipeline.kafka.worker import Standing

STALL_S = 10.0
INTERVAL_S = 5.0


def progress() -> Progress:
    return Progress(STALL_S, INTERVAL_S)


def sight(now: float, next_offset: int, committed: int, end: int) -> Sight:
    return Sight(now, [Standing("t", 0, next_offset, committed)], {("t", 0): end})


def test_one_that_takes_and_commits_is_well() -> None:
    watched = progress()
    for now in range(100):
        watched.see(sight(now, next_offset=now, committed=max(now - 4, 0), end=1000))
        assert watched.stalled() is None
    assert watched.lag == 901


def test_one_that_has_nothing_to_do_is_well() -> None:
    watched = progress()
    for now in range(100):
        watched.see(sight(now, next_offset=7, committed=7, end=7))
        assert watched.stalled() is None


def test_one_that_takes_nothing_is_not() -> None:
    watched = progress()
    for now in range(11):
        assert watched.stalled() is None
        watched.see(sight(now, next_offset=7, committed=7, end=8))
    assert "t-0 was taken for 10 s" in (watched.stalled() or "")


def test_one_that_commits_nothing_is_not() -> None:
    watched = progress()
    for now in range(16):
        assert watched.stalled() is None
        watched.see(sight(now, next_offset=8 + now, committed=7, end=100))
    assert "was committed for 15 s" in (watched.stalled() or "")


def test_one_partition_that_stands_still_among_others_is_noticed() -> None:
    watched = progress()
    for now in range(11):
        standings = [Standing("t", 0, now, now), Standing("t", 1, 3, 3)]
        watched.see(Sight(now, standings, {("t", 0): 1000, ("t", 1): 4}))
    assert "of t-1 " in (watched.stalled() or "")


def test_one_that_the_broker_refuses_for_long_is_not_well() -> None:
    watched = progress()
    standings = [Standing("t", 0, 7, 7)]
    for now in range(30):
        # let in again at 15
        watched.see(Sight(now, standings, None, refusal=None if now == 15 else "wrong password"))
        late = 10 <= now < 15 or now >= 26
        assert watched.stalled() == ("wrong password" if late else None), now


def test_one_that_waits_for_its_outputs_has_another_limit() -> None:
    watched = progress()
    for now in range(100):
        watched.see(replace(sight(now, next_offset=8, committed=7, end=100), is_saving=now % 9 > 0))
        assert watched.stalled() is None


def test_a_log_that_ends_before_what_was_taken_is_noticed_unless_it_was_for_a_moment() -> None:
    watched = progress()
    for now, end in enumerate([9, 7, 7, 9, 7, 7]):
        watched.see(sight(now, next_offset=8, committed=8, end=end))
        assert watched.shortened() is None
    watched.see(sight(6, next_offset=8, committed=8, end=7))
    assert watched.shortened() == (Standing("t", 0, 8, 8), 7)


def test_a_broker_that_does_not_answer_is_no_fault_of_the_worker() -> None:
    watched = progress()
    for now in range(100):
        watched.see(Sight(now, [Standing("t", 0, 7, 7)], None if now % 9 else {("t", 0): 100}))
        assert watched.stalled() is None


def test_one_that_was_given_nothing_while_nobody_takes_what_waits_is_not_well() -> None:
    watched = progress()
    for now in range(16):
        assert watched.stalled() is None
        watched.see(Sight(now, [], {("t", 0): 100}, committed={("t", 0): 50}))
    assert watched.stalled()


def test_one_that_stands_by_while_others_go_on_is_well() -> None:
    watched = progress()
    for now in range(100):
        watched.see(Sight(now, [], {("t", 0): 1000}, committed={("t", 0): now}))
        assert watched.stalled() is None


def test_a_partition_that_waits_for_a_model_is_well_and_hides_no_other() -> None:
    watched = progress()
    ends = {("t", 0): 1000, ("t", 1): 1000}
    for now in range(30):
        waits = Standing("t", 0, 7, 7, waits_for="a model")
        watched.see(Sight(now, [waits, Standing("t", 1, min(now, 15), min(now, 15))], ends))
        assert (watched.stalled() is None) == (now < 25), now
    assert "of t-1 was taken for 10 s" in (watched.stalled() or "")
    assert watched.lag == 993 + 985
