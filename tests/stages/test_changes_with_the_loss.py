"""Where the loss has changed, a change of an explanation needs less evidence."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fluxplain.config.replica import Replica
from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.follow_up import Shift
from fluxplain.drift.glr import CHANCE
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.schemas import Change, Evaluation, Explanation
from fluxplain.stages import DriftStage
from tests.kit.stages import explained, explanations, modelled
from tests.kit.support import STREAM, linear_config, of_kind, passed_on, run_copies, singles

JUMP, N = 350, 700

BEGAN, NOTICED = 1_000, 1_060

SERIES = DetectorSettings("increment", "glr", {"false_alarms": 1 / 28})
"""One of 28 series that share a false alarm in 100,000 records."""


def records() -> list[dict[str, Any]]:
    """Return records whose labels are suddenly larger: the model predicts 0."""
    rng = random.Random(1)
    x = {"a": 1.0, "b": 2.0, "c": "u"}
    return [{"x": x, "y": rng.gauss(1.0 if t < JUMP else 3.0, 0.1), "ts": t} for t in range(N)]


CONSTANT = linear_config(model={"factory": "tests.kit.support:Constant"})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("replica", [Replica("model"), Replica("model", 1, 2)])
def test_evaluations_of_each_shard_tell_where_the_loss_began_to_change(replica: Replica) -> None:
    [change] = of_kind(modelled(CONSTANT, records()), Change)
    found = of_kind([*singles(modelled(CONSTANT, records(), replica))], Evaluation)
    told = {each.seqs[0]: each.loss_changed_seq for each in found}
    [began] = {seq for seq in told.values() if seq is not None}
    assert JUMP - 64 < began <= JUMP
    assert {seq for seq, told_seq in told.items() if told_seq is None} == {
        seq for seq in told if seq <= change.seq
    }


@pytest.mark.slow
def test_explanations_pass_it_on() -> None:
    evaluations = of_kind([*singles(modelled(CONSTANT, records()))], Evaluation)
    told = {each.seqs[0]: each.loss_changed_seq for each in evaluations}
    found = of_kind(explained(CONSTANT, evaluations), Explanation)
    assert found == explanations(CONSTANT, records())
    assert {each.loss_changed_seq for each in found} == set(told.values())
    assert all(each.loss_changed_seq == told[each.seq] for each in found)


def alarm(numbers: list[float], *, told: bool, noticed: int = NOTICED) -> int | None:
    """Return the place of the first alarm in a series, of whose loss a change was noticed."""
    watch = SignalWatch(SERIES, "")
    for t, number in enumerate(numbers):
        began = BEGAN if told and t > noticed else None
        if any(isinstance(each, Shift) for each in watch.update(t, number, None, None, began)):
            return t
    return None


Noise = Callable[[np.random.Generator, int], Any]

NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "sparse": lambda rng, n: rng.exponential(size=n) * (rng.random(n) < 0.1),
    "dependent": lambda rng, n: np.convolve(rng.normal(size=n + 4), np.ones(5), "valid"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("after", [24, 60, 800])
@pytest.mark.parametrize("name", NOISES)
def test_what_does_not_change_with_the_loss_seldom_alarms(name: str, after: int) -> None:
    runs, noticed = 100, BEGAN + after
    alarms = 0
    for seed in range(runs):
        numbers = NOISES[name](np.random.default_rng(seed), noticed + 2 * after)
        alarms += alarm(numbers.tolist(), told=True, noticed=noticed) is not None
    assert alarms <= stats.binom.ppf(0.999, runs, CHANCE)


@pytest.mark.parametrize("name", ["normal", "skewed"])
def test_what_changes_with_the_loss_is_found_sooner(name: str) -> None:
    delays: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(20):
        numbers = NOISES[name](np.random.default_rng(seed), 2 * BEGAN)
        numbers[BEGAN:] += 0.8
        for told, found in delays.items():
            at = alarm(numbers.tolist(), told=told)
            found.append(math.inf if at is None else at - BEGAN)
    assert all(np.array(delays[True]) <= delays[False])
    assert np.median(delays[True]) < 0.7 * np.median(delays[False])


def test_the_drift_stage_takes_it_from_the_explanations() -> None:
    config = linear_config(
        features={"a": "numeric"},
        drift={"detector": "glr", "false_alarms": 0.1, "delta": None, "grace_period": None},
    )
    numbers = np.random.default_rng(4).normal(3.0, 1.0, size=1_400)
    numbers[BEGAN:] += 0.9
    seqs = [[*range(t, t + 10)] for t in range(0, len(numbers), 10)]
    told = [
        Explanation(
            stream=STREAM,
            feature="a",
            method="ipfi",
            seq=each[-1],
            previous_seq=each[0] - 1 if each[0] else None,
            ts=None,
            alpha=0.05,
            updates=each[-1] + 1,
            value=0.0,
            std_error=None,
            seqs=each,
            increments=numbers[each].tolist(),
            loss_changed_seq=BEGAN if each[-1] > NOTICED else None,
        )
        for each in seqs
    ]
    untold = [replace(each, loss_changed_seq=None) for each in told]
    sooner, later = (
        of_kind(run_copies(DriftStage(config), passed_on(each)), Change)[0]
        for each in (told, untold)
    )
    assert BEGAN < sooner.seq < later.seq
    assert sooner.feature == later.feature == "a"
