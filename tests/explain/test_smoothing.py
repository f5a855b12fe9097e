"""Exponential means against their closed forms."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model

from fluxplain.evaluate.table import table_of
from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from fluxplain.explain.smoothing import ExponentialMeans, OutputMean, confidence_bound
from tests.kit.support import NUMBERS, PROPERTY, Linear, normal_rows, pickled

ALPHAS = st.floats(1e-4, 1.0)
SEQUENCES = st.lists(NUMBERS, min_size=1, max_size=60)
ROUNDING = 1e-9  # relative; 60 updates lose at most a few hundred units of 2^-53
TINY = 1e-300  # absolute: numbers near the smallest float lose more


class Mean(NamedTuple):
    """One of several means."""

    value: float
    variance: float
    std_error: float


def smoothed(values: list[float], alpha: float, *, debias: bool = True) -> Mean:
    """Smooth a sequence beside another one, in two parts."""
    means = ExponentialMeans(2, [0.5, alpha] if alpha != 0.5 else [alpha], debias=debias)
    both = np.array([[7.0, v] for v in values])
    means.update(both[:3])
    means.update(both[3:])
    assert means.n == len(values)
    numbers = means.values, means.variances, means.std_errors
    return Mean(*(each[-1, 1].item() for each in numbers))


def weights(alpha: float, n: int) -> np.ndarray:
    """The undebiased weights of n updates, the oldest first."""
    return alpha * (1.0 - alpha) ** np.arange(n - 1, -1, -1.0)


@PROPERTY
@given(NUMBERS, ALPHAS, st.integers(1, 60))
def test_a_constant_sequence_stays_exactly_constant(c: float, alpha: float, n: int) -> None:
    mean = smoothed([c] * n, alpha)
    assert mean.value == c
    assert mean.variance == 0.0
    assert mean.std_error in {0.0, math.inf}, "0 once it is known"


@PROPERTY
@given(SEQUENCES, ALPHAS)
def test_the_estimate_is_the_recursion_divided_by_its_weights(
    values: list[float], alpha: float
) -> None:
    e = 0.0
    for v in values:
        e = (1.0 - alpha) * e + alpha * v
    scale = max(map(abs, values))
    n = len(values)
    expected = e / -math.expm1(n * math.log1p(-alpha)) if alpha < 1.0 else e
    assert smoothed(values, alpha).value == pytest.approx(
        expected, rel=0, abs=ROUNDING * scale + TINY
    )
    undebiased = smoothed(values, alpha, debias=False).value
    assert undebiased == pytest.approx(e, rel=0, abs=ROUNDING * scale + TINY)


@PROPERTY
@given(SEQUENCES, ALPHAS)
def test_the_variance_is_the_weighted_variance(values: list[float], alpha: float) -> None:
    w = weights(alpha, len(values))
    mean = np.average(values, weights=w)
    expected = np.average((np.array(values) - mean) ** 2, weights=w)
    scale = float(np.max(np.abs(values))) ** 2
    assert smoothed(values, alpha).variance == pytest.approx(
        expected, rel=0, abs=ROUNDING * scale + TINY
    )


def test_before_the_first_update_nothing_is_known() -> None:
    means = ExponentialMeans(1, [0.1])
    assert (means.values.item(), means.n, means.std_errors.item()) == (0.0, 0, math.inf)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.1, math.nan, math.inf])
def test_alpha_out_of_range_is_named(alpha: float) -> None:
    for make in (lambda: ExponentialMeans(1, [alpha]), lambda: OutputMean(alpha)):
        with pytest.raises(ValueError, match=r"alpha is .*must lie in \(0, 1\]"):
            make()


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_delta_out_of_range_is_named(delta: float) -> None:
    with pytest.raises(ValueError, match="delta is"):
        confidence_bound(0.1, delta)


@PROPERTY
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), ALPHAS)
def test_an_output_mean_smooths_numbers_and_probabilities_alike(
    values: list[float], alpha: float
) -> None:
    expected = smoothed(values, alpha).value
    number, probabilities = OutputMean(alpha), OutputMean(alpha)
    for v in values:
        number.update(table_of([v]))
        probabilities.update(table_of([{"yes": v}]))
    assert number.value == pytest.approx(expected, abs=ROUNDING)
    assert probabilities.value == {"yes": number.value}


@PROPERTY
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(0.0, 1.0)), min_size=1, max_size=20),
    ALPHAS,
)
def test_a_class_that_an_output_lacks_counts_as_zero(
    outputs: list[dict[bool | int | str, float]], alpha: float
) -> None:
    mean = OutputMean(alpha)
    for output in outputs:
        mean.update(table_of([output]))
    assert isinstance(mean.value, dict)
    for label in "abc":
        expected = smoothed([output.get(label, 0.0) for output in outputs], alpha).value
        assert mean.value.get(label, 0.0) == pytest.approx(expected, abs=ROUNDING)


def test_an_output_mean_refuses_to_mix_numbers_and_probabilities() -> None:
    mean = OutputMean(0.1)
    mean.update(table_of([1.0]))
    with pytest.raises(TypeError, match="the model gave both numbers and probabilities"):
        mean.update(table_of([{"a": 1.0}]))


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("as_arrays", [True, False])
def test_several_rates_smooth_the_increments_of_the_first(
    kind: type[IncrementalPFI | IncrementalSAGE], as_arrays: bool
) -> None:
    """iSAGE's mean prediction is that of the first rate, whatever the others are."""
    model = linear_model.LinearRegression() if as_arrays else Linear({"a": 2.0, "b": 1.0})
    options: dict[str, Any] = {"loss": "squared_error", "reservoir_size": 5, "seed": 1}
    several = kind(model, ["a", "b"], alpha=[0.1, 0.5, 0.02], **options)
    alone = kind(model, ["a", "b"], alpha=0.1, **options)
    others = {alpha: ExponentialMeans(2, [alpha], reach=10) for alpha in (0.5, 0.02)}
    for x in normal_rows(60, "ab", seed=1):
        y = 2.0 * float(x["a"]) + 1.0
        assert several.explain_one(x, y) == alone.explain_one(x, y)
        model.learn_one(x, y)
        for alpha, means in others.items():
            if several.increments:
                means.update(np.array([list(several.increments.values())]))
            estimates = pickled(several).at(alpha)
            assert list(estimates.values.values()) == means.values[0].tolist()
            assert list(estimates.std_errors.values()) == means.std_errors[0].tolist()
    assert several.at(0.1).values == several.values == alone.values
    assert several.at(0.02).confidence(0.25)["a"] == 2.0 * several.at(0.02).std_errors["a"]
    with pytest.raises(ValueError, match=r"alpha is 0\.3, but must be one of 0\.1, 0\.5, 0\.02"):
        several.at(0.3)
