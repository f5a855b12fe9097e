"""How far explanations are from each other, and how the papers print it."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fluxplain.evaluate.encoding import Floats

BOOTSTRAPS = 10_000
"""Samples with replacement from which an interval is read."""


def error(ours: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """Return Σ_j |ours_j - truth_j| of importances that are scaled to [0, 1] each.

    Scaled are the shares in the sum, without negative ones, as the iPFI authors' scripts do it.

    Examples
    --------
    >>> error({"a": 3.0, "b": 1.0, "c": -0.1}, {"a": 0.5, "b": 0.5, "c": 0.0})
    0.5
    """
    mine, right = _shares(ours), _shares(truth)
    return sum(abs(mine[feature] - right[feature]) for feature in truth)


def _shares(values: Mapping[str, float]) -> dict[str, float]:
    positive = {feature: max(value, 0.0) for feature, value in values.items()}
    total = sum(positive.values()) or 1.0
    return {feature: value / total for feature, value in positive.items()}


def distance_between(effect: Sequence[float] | Floats, other: Sequence[float] | Floats) -> float:
    """Return the mean distance of two partial dependence curves over the same points.

    Examples
    --------
    >>> distance_between([0.0, 1.0], [0.5, 1.0])
    0.25
    """
    return float(np.abs(np.subtract(effect, other)).mean())


def median_and_iqr(errors: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the difference between the third and the first quartile."""
    first, middle, third = np.quantile(errors, (0.25, 0.5, 0.75)).tolist()
    return middle, third - first


def median_interval(errors: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    return _middle(_medians(errors, 1))


def difference_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the difference of two medians, ours minus theirs.

    Examples
    --------
    >>> low, high = difference_interval([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    >>> low < 0.0 < high
    True
    """
    return _middle(_medians(ours, 1) - _medians(theirs, 2))


def _medians(errors: Sequence[float], seed: int) -> Floats:
    drawn = np.random.default_rng(seed).choice(np.asarray(errors), (BOOTSTRAPS, len(errors)))
    medians: Floats = np.median(drawn, axis=1)
    return medians


def _middle(numbers: Floats) -> tuple[float, float]:
    low, high = np.quantile(numbers, (0.025, 0.975)).tolist()
    return low, high


def printed(median: float, iqr: float) -> str:
    """Return both as the paper prints them.

    Examples
    --------
    >>> printed(0.0112, 0.006)
    '.011 (.006)'
    """
    return f"{thousandths(median)} ({thousandths(iqr)})"


def thousandths(value: float) -> str:
    """Return a number as the papers print it.

    Examples
    --------
    >>> thousandths(0.0371), thousandths(1.2), thousandths(-0.003)
    ('.037', '1.200', '-.003')
    """
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1.0 else f"{value:.3f}"


def span(low: float, high: float) -> str:
    """Return an interval as it is printed.

    Examples
    --------
    >>> span(-0.0031, 0.0092)
    '-.003 to .009'
    """
    return f"{thousandths(low)} to {thousandths(high)}"


def paper_rows(name: str) -> list[list[str]]:
    """Return the rows of a table in ``papers``, without the header."""
    path = Path(__file__).parent / "papers" / f"{name}.csv"
    _, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    return rows


def paper_table(name: str) -> dict[tuple[str, ...], list[tuple[float, float]]]:
    """Return a table of a paper: three cells of a row → its figures, each with its spread."""
    numbers = {tuple(row[:3]): [*map(float, row[3:])] for row in paper_rows(name)}
    return {key: [*zip(each[::2], each[1::2], strict=True)] for key, each in numbers.items()}
