"""Categories as numbers, for trees."""

from collections.abc import Collection
from numbers import Real

from fluxplain.evaluate import Observation, Value

MOST_CATEGORIES = 50
"""Largest number of categories that a tree distinguishes: a leaf counts them, and their pairs."""


class Codes:
    """Numbers the categories; all after the first ``size`` share one number.

    Parameters
    ----------
    features
        The categorical features.
    size
        Number of categories of each feature with their own number.

    Examples
    --------
    >>> codes = Codes(["c"], size=2)
    >>> for c in ("u", "v", "w"):
    ...     codes.learn({"a": 0.5, "c": c})
    >>> [codes({"a": 0.5, "c": c})["c"] for c in ("u", "v", "w", "new")]
    [0, 1, 2, 2]
    """

    def __init__(self, features: Collection[str], size: int = MOST_CATEGORIES) -> None:
        self.size = size
        self._tables: dict[str, dict[Value, int]] = {feature: {} for feature in features}

    def __contains__(self, feature: str) -> bool:
        """Return whether the feature is categorical."""
        return feature in self._tables

    def learn(self, x: Observation) -> None:
        """Number the categories of an observation."""
        for feature, table in self._tables.items():
            if feature in x and len(table) < self.size:
                table.setdefault(x[feature], len(table))

    def __call__(self, x: Observation) -> dict[str, float]:
        """Return the observation in numbers; raise ``ValueError`` if a numeric value is not one."""
        return {feature: self._number(feature, value) for feature, value in x.items()}

    def _number(self, feature: str, value: Value) -> float:
        table = self._tables.get(feature)
        if table is not None:
            return table.get(value, self.size)
        if not isinstance(value, float | int | Real):  # the first two are checked faster
            raise ValueError(
                f"{feature} is {value!r}, but must be a number unless it is categorical"
            )
        return value
