"""Whether a model is still learning."""

import numpy as np
import pytest

from fluxplain.drift.loss_course import LossCourse


def course_of(losses: "np.typing.NDArray[np.float64]", model: str | None = None) -> LossCourse:
    course = LossCourse()
    for loss in losses.tolist():
        course.add(loss, model)
    return course


def test_a_loss_that_falls_from_the_start_is_seen() -> None:
    slow = 0
    for seed in range(20):
        t = np.arange(4_000.0)
        noise = np.random.default_rng(seed).exponential(size=len(t))
        assert course_of(((0.1 + np.exp(-t / 600.0)) * noise)[:2_000]).is_falling
        slow += course_of((0.1 + 1.0 / np.sqrt(1.0 + t / 50.0)) * noise).is_falling
    assert slow >= 12


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_one_that_stays_is_not_called_falling(correlation: float) -> None:
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=rng.integers(64, 4_000))
        for t in range(1, len(noise)):
            noise[t] += correlation * noise[t - 1]
        wrong += course_of(noise).is_falling
    assert wrong <= 10


def test_one_that_fell_long_ago_or_rises_again_is_not_called_falling() -> None:
    rng = np.random.default_rng(1)
    early = np.exp(-np.arange(1_000.0) / 200.0)
    late = np.concatenate([early, np.zeros(9_000)]) + 0.1 * rng.exponential(size=10_000)
    assert not course_of(late).is_falling
    again = np.concatenate([early, np.ones(300)]) + 0.1 * rng.exponential(size=1_300)
    assert not course_of(again).is_falling


def test_another_model_begins_anew() -> None:
    course = course_of(np.linspace(1.0, 0.0, 2_000), model="1")
    assert course.is_falling
    course.add(0.5, "2")
    assert not course.is_falling


def test_losses_that_are_missing_do_not_count() -> None:
    course = course_of(np.linspace(1.0, 0.0, 2_000))
    for _ in range(1_000):
        course.add(None)
    assert course.is_falling
