"""Detectors that compare windows: of the inputs, and of mean absolute Shapley values."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas.record import Value
from tests.kit.support import outputs_of

BLOCK = 250
"""Records in a window; windows do not overlap."""

REFERENCE = 1_000
"""Records that each window is compared with: the first ones, after an alarm the next ones."""

TESTS = 100_000 // BLOCK
"""Tests of one feature in 100,000 records: Bonferroni's correction allows one false alarm in all of
these and of all features, as many as our default."""

LARGE_PSI = 0.25
"""The customary limit of a significant change."""

BINS = 10

Differs = Callable[[Floats, Floats, float], bool]
"""Whether a window differs from the reference, at a level of significance."""


def ks(reference: Floats, window: Floats, level: float) -> bool:
    """Return what the two-sample test of Kolmogorov and Smirnov says."""
    return bool(stats.ks_2samp(reference, window, method="asymp").pvalue < level)


def psi(reference: Floats, window: Floats, _: float) -> bool:
    """Return whether the population stability index of the reference's deciles is large."""
    edges = np.unique(np.quantile(reference, np.arange(1, BINS) / BINS))
    one, other = (
        (np.bincount(np.searchsorted(edges, each, "right"), minlength=len(edges) + 1) + 0.5)
        / (len(each) + 0.5 * (len(edges) + 1))
        for each in (reference, window)
    )
    return bool(((other - one) * np.log(other / one)).sum() > LARGE_PSI)


def mean(reference: Floats, window: Floats, level: float) -> bool:
    """Return whether the means differ, by a z-test for independent numbers."""
    variance = reference.var() / len(reference) + window.var() / len(window)
    difference = abs(window.mean() - reference.mean())
    return bool(difference > stats.norm.isf(level / 2) * math.sqrt(variance))


def alarms(differs: Differs, features: Mapping[str, Floats]) -> dict[str, list[int]]:
    """Return feature → last records of the windows that differ; the next reference begins there."""
    level = 1.0 / TESTS / len(features)
    found: dict[str, list[int]] = {}
    for feature, numbers in features.items():
        begin, found[feature] = 0, []
        for end in range(BLOCK, len(numbers) + 1, BLOCK):
            reference = numbers[begin : begin + REFERENCE]
            window = numbers[end - BLOCK : end]
            if end >= begin + REFERENCE + BLOCK and differs(reference, window, level):
                found[feature].append(end - 1)
                begin = end - BLOCK
    return found


def shapley(
    ask: Any, x: Mapping[str, Value], other: Mapping[str, Value], rng: random.Random
) -> tuple[Any, dict[str, float]]:
    """Return the model's output, and the sizes of an estimate of its Shapley values.

    Features are replaced by those of another record, one after the other, in one random order: the
    cheapest unbiased estimate of the interventional values. Its mean size is above that of exact
    values, which does not matter for what changes. The output is the probability of the class
    that the model predicts.
    """
    order = rng.sample([*x], len(x))
    replaced: list[dict[str, Value]] = [{}]
    for feature in order:
        replaced.append(replaced[-1] | {feature: other[feature]})
    outputs: list[Any] = outputs_of(ask, x, replaced)
    predicted = max(outputs[0], key=outputs[0].get, default=None)
    p = [each.get(predicted, 0.0) for each in outputs]
    return outputs[0], {f: abs(p[k] - p[k + 1]) for k, f in enumerate(order)}
