"""Standard errors of means of dependent numbers hold, or are not known."""

import math

import numpy as np
import pytest

from fluxplain.drift.series_error import error_of_mean

NONE = np.empty(0)


def autoregressive(phi: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of mean 0, and as many earlier ones, half of whose variance is noise."""
    rng = np.random.default_rng(seed)
    own, level = np.empty(2 * n), rng.normal()
    for t in range(2 * n):
        level = phi * level + math.sqrt(1.0 - phi * phi) * rng.normal()
        own[t] = level
    own += rng.normal(size=2 * n)
    return own[n:], own[:n]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8, 0.95])
def test_two_errors_cover_the_mean_of_an_autoregressive_series(phi: float) -> None:
    beyond = 0
    for seed in range(200):
        numbers, earlier = autoregressive(phi, 100, seed)
        beyond += abs(numbers.mean()) > 2.0 * error_of_mean(numbers, earlier)
    assert beyond <= 16


def test_of_independent_numbers_it_is_little_more_than_that_of_them() -> None:
    rng = np.random.default_rng(3)
    errors = [error_of_mean(rng.normal(size=100), rng.normal(size=200)) for _ in range(100)]
    assert 0.1 < float(np.median(errors)) < 0.13


def test_of_numbers_that_are_nearly_one_it_is_not_known() -> None:
    numbers = np.random.default_rng(4).normal(size=100).cumsum()
    assert error_of_mean(numbers, NONE) == math.inf


def test_of_a_constant_it_is_zero() -> None:
    assert error_of_mean(np.full(20, 0.3), np.arange(50.0)) == 0.0
