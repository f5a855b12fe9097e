"""The cause of a change explains its direction, and errors hold where observations depend."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fluxplain.drift.cause import cause_of
from fluxplain.drift.recent_observations import Columns
from fluxplain.schemas import Change
from fluxplain.schemas.change import Cause
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import MAX_NUMBER
from tests.kit import records

BEGIN, END, EVERY = 4000, 5000, 10


def change(before: float, after: float, method: Method = "ipfi") -> Change:
    return replace(
        records.change("x0", BEGIN + 60, before=before, after=after),
        method=method,
        before_std_error=0.05,
        after_std_error=0.05,
        after_seq=BEGIN,
        status="confirmed",
        status_seq=END - 1,
        direction="rose" if after > before else "fell",
        signal="increment",
    )


def contrasts(seed: int, data: float = 1.0, model: float = 1.0) -> list[Contrast]:
    """Return contrasts of a weight 1 that the model, and of inputs that the data, multiply."""
    rng = np.random.default_rng(seed)
    found = []
    for seq in range(2000, END, EVERY):
        scale, weight = (data, model) if seq >= BEGIN else (1.0, 1.0)
        now, then = abs(rng.normal(size=2) - rng.normal(size=2)) * (scale, 1.0)
        numbers = [weight * now, now, weight * then, then]
        found.append(Contrast(seq, seq // 1000 * 1000 - 1001, *map(float, numbers)))
    return found


def kind(told: Change, of: list[Contrast]) -> str:
    cause = cause_of(told, of)
    assert cause is not None
    return cause.kind


@pytest.mark.parametrize("method", ["ipfi", "isage", "ipdp", "ishap", "interaction"])
def test_what_moves_the_output_more_explains_a_rise(method: Method) -> None:
    rise = change(1.0, 2.0, method)
    assert kind(rise, contrasts(1, data=2.0)) == "data"
    assert kind(rise, contrasts(1, model=2.0)) == "model"
    assert kind(rise, contrasts(1, data=1.5, model=1.5)) == "both"


@pytest.mark.parametrize("method", ["ipdp", "ishap", "interaction"])
def test_without_labels_what_moves_the_output_more_does_not_explain_a_fall(method: Method) -> None:
    fall = change(2.0, 1.0, method)
    assert kind(fall, contrasts(1, data=2.0)) == "unclear"
    assert kind(fall, contrasts(1, model=2.0)) == "unclear"
    assert kind(fall, contrasts(1, data=0.4)) == "data"


def test_where_the_output_moves_the_other_way_the_labels_are_the_cause() -> None:
    for after in (0.8, -0.9):
        assert kind(change(2.0, after), contrasts(1, data=1.3)) == "labels"


def test_inputs_do_not_turn_use_into_harm() -> None:
    assert kind(change(0.9, -2.0), contrasts(1, data=2.0)) == "labels"


def test_the_model_may_begin_to_use_a_feature_that_did_a_little_harm() -> None:
    assert kind(change(-0.11, 2.0), contrasts(1, model=2.0)) == "model"


def test_harm_grows_as_use_does() -> None:
    assert kind(change(-0.5, -2.0), contrasts(1, data=2.0)) == "data"


def test_a_model_that_changed_the_other_way_is_not_the_cause() -> None:
    assert kind(change(2.0, 0.9), contrasts(1, model=1.8)) == "unclear"


def test_labels_are_named_only_for_a_change_that_the_output_cannot_explain() -> None:
    told = [contrasts(seed) for seed in range(50)]
    assert sum(kind(change(2.0, 0.2), each) == "labels" for each in told) >= 45
    assert sum(kind(change(2.0, 1.8), each) == "labels" for each in told) <= 5


def test_the_parts_and_their_errors_are_those_of_the_contrasts() -> None:
    cause = cause_of(change(1.0, 4.0), contrasts(2, data=2.0, model=1.5))
    assert isinstance(cause, Cause)
    mean = 2.0 / math.sqrt(math.pi)
    parts = (
        (cause.data, cause.data_std_error, mean),
        (cause.model, cause.model_std_error, 0.5 * mean),
        (cause.interaction, cause.interaction_std_error, 0.5 * mean),
    )
    for part, error, truth in parts:
        assert error is not None
        assert abs(part - truth) < 2.5 * error


def with_increments(seed: int, data: float) -> tuple[list[Contrast], Columns]:
    """Return contrasts of inputs that grow, and the squares of all distances as increments."""
    rng, found = np.random.default_rng(seed), []
    seqs = np.arange(2000, END)
    scales = np.where(seqs < BEGIN, 1.0, data)
    moves = scales * abs(rng.normal(size=len(seqs)) - rng.normal(size=len(seqs)))
    for seq, move in zip(seqs[::EVERY].tolist(), moves[::EVERY].tolist(), strict=True):
        then = abs(rng.normal() - rng.normal())
        found.append(Contrast(seq, seq // 1000 * 1000 - 1001, move, move, then, then))
    return found, Columns(seqs, moves**2, moves)


def test_the_increments_of_all_observations_make_the_parts_more_precise() -> None:
    rise, truth = change(1.0, 4.0), 2.0 / math.sqrt(math.pi)
    ratios, misses = [], []
    for seed in range(60):
        told, increments = with_increments(seed, data=2.0)
        plain, precise = cause_of(rise, told), cause_of(rise, told, increments)
        assert plain is not None
        assert precise is not None
        assert plain.data_std_error is not None
        assert precise.data_std_error is not None
        ratios.append(precise.data_std_error / plain.data_std_error)
        misses.append((precise.data - truth) / precise.data_std_error)
    assert float(np.median(ratios)) < 0.75
    assert float(np.std(misses)) < 1.2


@pytest.mark.parametrize("size", [MAX_NUMBER, 1e-300])
def test_the_largest_and_smallest_numbers_have_a_cause(size: float) -> None:
    told, increments = with_increments(1, data=1.0)
    scaled = [
        replace(c, new=n, old=n, new_then=t, old_then=t)
        for c, n, t in ((c, size * c.new / 9.0, size * c.old_then / 9.0) for c in told)
    ]
    increments = increments._replace(increments=size / 99.0 * increments.increments)
    for after in (0.1, -0.9):
        assert kind(change(1.0, after), scaled) == "labels"
        cause = cause_of(change(1.0, after), scaled, increments)
        assert cause is not None
        assert cause.kind == "labels"


def unchanged(phi: float, runs: int, seed: int) -> list[list[Contrast]]:
    """Return contrasts of a frozen weight 1 with autoregressive inputs, by run.

    Reservoirs are geometric and take inputs late; older ones stay as they were.
    """
    rng, late = np.random.default_rng(seed), 0 if phi == 0.0 else 200
    x, reservoir = rng.normal(size=runs), np.empty((100, runs))
    everyone, inputs = np.arange(runs), []
    older: dict[int, np.ndarray] = {}
    found: list[list[Contrast]] = [[] for _ in range(runs)]
    for seq in range(END):
        inputs.append(x)
        if seq >= 2000 and seq % EVERY == 0:
            since = (seq // 1000 - 1) * 1000
            drawn, drawn_then = rng.integers(100, size=(2, runs))
            now = abs(x - reservoir[drawn, everyone])
            then = abs(inputs[seq - 2000] - older[since][drawn_then, everyone])
            for run in everyone:
                numbers = float(now[run]), float(then[run])
                found[run].append(Contrast(seq, since - 1, *np.repeat(numbers, 2).tolist()))
        if seq >= late:
            slots = rng.integers(100, size=runs) if seq - late >= 100 else seq - late
            reservoir[slots, everyone] = inputs[seq - late]
        if (seq + 1) % 1000 == 0:
            older[seq + 1] = reservoir.copy()
        x = phi * x + math.sqrt(1.0 - phi * phi) * rng.normal(size=runs)
    return found


@pytest.mark.parametrize("phi", [0.0, 0.9, 0.98, 0.995])
def test_dependent_inputs_that_do_not_change_are_rarely_the_cause(phi: float) -> None:
    causes = [cause_of(change(1.0, 1.2), each) for each in unchanged(phi, runs=200, seed=1)]
    known = [each for each in causes if each is not None and each.data_std_error]
    ratios = [each.data / each.data_std_error for each in known if each.data_std_error]
    assert np.std(ratios) < 1.3
    assert sum(each is not None and each.kind == "data" for each in causes) <= 15
    assert all(each.kind == "unclear" for each in causes if each and each.data_std_error is None)
