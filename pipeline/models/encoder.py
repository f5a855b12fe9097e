"""Observations as rows of numbers, for array-based models."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from river import preprocessing

from fluxplain.evaluate import Observation, Value
from fluxplain.evaluate.encoding import Floats


class Rows(Protocol):
    """Turns each observation into a row."""

    width: int

    def learn(self, x: Observation) -> None:
        """Learn an observation."""

    def rows(self, xs: Sequence[Observation]) -> Floats:
        """Return the observations as rows."""


class Encoder:
    """Standardizes numbers and one-hot encodes categories.

    A row has the numeric features first, in their order, then ``categories`` columns for each
    categorical feature: one is 1, the others 0. A category gets its column when it is first
    learned; without a column, all are 0.

    Parameters
    ----------
    features
        Feature → ``"numeric"`` or ``"categorical"``.
    scale
        Whether to express numbers in standard deviations from their mean, both over all learned
        observations.
    categories
        Columns of each categorical feature.

    Raises
    ------
    ValueError
        If a feature is of another kind, or `categories` is less than 1.

    Examples
    --------
    >>> encoder = Encoder({"age": "numeric", "car": "categorical"}, scale=False, categories=2)
    >>> for car in ("a", "b", "c"):
    ...     encoder.learn({"age": 30.0, "car": car})
    >>> encoder.rows([{"age": 40.0, "car": "b"}, {"age": 50.0, "car": "c"}]).tolist()
    [[40.0, 0.0, 1.0], [50.0, 0.0, 0.0]]
    """

    def __init__(
        self, features: Mapping[str, str], *, scale: bool = True, categories: int = 20
    ) -> None:
        if categories < 1:
            raise ValueError(f"categories is {categories}, but must be at least 1")
        for feature, kind in features.items():
            if kind not in {"numeric", "categorical"}:
                raise ValueError(
                    f"the feature {feature} is {kind!r}, but must be 'numeric' or 'categorical'"
                )
        self._numeric = [name for name, kind in features.items() if kind == "numeric"]
        self._categorical = [name for name, kind in features.items() if kind == "categorical"]
        self._scaler = preprocessing.StandardScaler() if scale else None
        self._most = categories
        self._columns: dict[str, dict[Value, int]] = {name: {} for name in self._categorical}
        self.width = len(self._numeric) + categories * len(self._categorical)

    def learn(self, x: Observation) -> None:
        """Update means and deviations, and assign columns to new categories."""
        numbers = self._numbers([x])[0]
        if self._scaler is not None:
            self._scaler.learn_one(dict(zip(self._numeric, numbers.tolist(), strict=True)))
        for place, feature in enumerate(self._categorical):
            columns = self._columns[feature]
            if len(columns) < self._most:
                begin = len(self._numeric) + place * self._most
                columns.setdefault(_value(x, feature), begin + len(columns))

    def rows(self, xs: Sequence[Observation]) -> Floats:
        """Return rows, shape (observations, width); raise ValueError for a missing number."""
        rows = np.zeros((len(xs), self.width))
        rows[:, : len(self._numeric)] = self._scaled(self._numbers(xs))
        for feature, columns in self._columns.items():
            for row, x in enumerate(xs):
                column = columns.get(_value(x, feature))
                if column is not None:
                    rows[row, column] = 1.0
        return rows

    def _numbers(self, xs: Sequence[Observation]) -> Floats:
        numbers = [[_number(x, feature) for feature in self._numeric] for x in xs]
        return np.array(numbers, np.float64).reshape(len(xs), len(self._numeric))

    def _scaled(self, numbers: Floats) -> Floats:
        if self._scaler is None:
            return numbers
        means, variances = self._scaler.means, self._scaler.vars
        deviations = np.sqrt([variances.get(feature, 0.0) for feature in self._numeric])
        centred = numbers - np.array([means.get(feature, 0.0) for feature in self._numeric])
        scaled = np.zeros_like(numbers)
        np.divide(centred, deviations, out=scaled, where=deviations > 0.0)
        return scaled


def _value(x: Observation, feature: str) -> Value:
    try:
        return x[feature]
    except KeyError:
        raise ValueError(f"the observation lacks the feature {feature}") from None


def _number(x: Observation, feature: str) -> float:
    value = _value(x, feature)
    if isinstance(value, str) or value is None:
        raise ValueError(f"the feature {feature} must be a number, but is {value!r}")
    return value
