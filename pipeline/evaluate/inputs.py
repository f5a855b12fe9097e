"""The perturbed inputs of one observation, sorted by what is replaced."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.evaluate.base import Observation, Value

Floats = NDArray[np.float64]

Item = tuple[Value, int]
"""A replacement value, and the row it makes."""


N = TypeVar("N", bound=Collection[Value])


_PLAIN = {float, int, bool}


class NoNumberError(TypeError):
    """A value that should be a number is none."""


class Inputs:
    """The inputs of one call, a row each, and the observation itself as one more row.

    Attributes
    ----------
    x
        The observation.
    rows
        How many inputs there are; ``rows`` is also the row of the observation itself.
    same
        The rows in which nothing is replaced.
    singles
        Feature → the rows in which only this one is replaced, with their values.
    several
        Row → the whole input, where more features are replaced.
    """

    def __init__(self, x: Observation, replacements: Sequence[Mapping[str, Value]]) -> None:
        self.x = x
        self._replacements = replacements
        self.rows = len(replacements)
        self.same: list[int] = []
        self.singles: dict[str, list[Item]] = {}
        self.several: dict[int, dict[str, Value]] = {}
        singles = self.singles
        for row, replacement in enumerate(replacements):
            if len(replacement) == 1:
                for feature, value in replacement.items():
                    if feature in singles:
                        singles[feature].append((value, row))
                    else:
                        singles[feature] = [(value, row)]
            elif replacement:
                self.several[row] = {**x, **replacement}
            else:
                self.same.append(row)

    def input(self, row: int) -> Observation:
        """Return a whole input."""
        return self.x if row == self.rows else {**self.x, **self._replacements[row]}

    def value(self, row: int, feature: str) -> Value:
        """Return the value of one feature in one input, or raise ``KeyError``."""
        if row < self.rows and feature in self._replacements[row]:
            return self._replacements[row][feature]
        return self.x[feature]

    def matrix(self, columns: Mapping[str, int]) -> Floats:
        """Return the numbers of all rows.

        Parameters
        ----------
        columns
            Feature → column, from 1 on.

        Returns
        -------
        Shape (rows + 1, features + 1); NaN where a feature is missing, and in column 0.

        Raises
        ------
        NoNumberError
            If the value of one of the features is no number.
        """
        matrix = np.empty((self.rows + 1, len(columns) + 1))
        get = self.x.get
        matrix[:] = [math.nan, *_numbers([get(feature, math.nan) for feature in columns])]
        rows: list[int] = []
        places: list[int] = []
        values: list[Value] = []
        for feature, items in self.singles.items():
            if column := columns.get(feature):
                new, where = zip(*items, strict=True)
                values += new
                rows += where
                places += [column] * len(items)
        for row in self.several:
            replacement = self._replacements[row]
            known = [feature for feature in replacement if feature in columns]
            values += [replacement[feature] for feature in known]
            rows += [row] * len(known)
            places += [columns[feature] for feature in known]
        if rows:
            matrix[rows, places] = _numbers(values)
        return matrix


class Rows:
    """Whole inputs of numbers, in the place of :class:`Inputs`.

    Parameters
    ----------
    x
        The observation; all of its values are numbers.
    rows
        Shape (inputs, features), in the order of ``x``.
    """

    def __init__(self, x: Observation, rows: Floats) -> None:
        self.x = x
        self._rows = rows

    def matrix(self, columns: Mapping[str, int]) -> Floats:
        """Return the numbers of all rows; see :meth:`Inputs.matrix`."""
        places = {feature: place for place, feature in enumerate(self.x) if feature in columns}
        to, source = [columns[feature] for feature in places], list(places.values())
        matrix = np.full((len(self._rows) + 1, len(columns) + 1), math.nan)
        matrix[:-1, to] = self._rows[:, source]
        matrix[-1, to] = as_floats([self.x[feature] for feature in places])
        return matrix


def as_floats(values: Collection[Value]) -> Floats:
    """Return numbers as an array.

    Raises
    ------
    NoNumberError
        If one of them is no number, or too large for a float.
    """
    try:
        numbers = values if set(map(type, values)) <= _PLAIN else _numbers(values)
        return np.fromiter(numbers, np.float64, len(numbers))
    except OverflowError as error:
        raise NoNumberError(str(error)) from None


def _numbers(values: N) -> N:
    """Return values that are all numbers."""
    if not set(map(type, values)) <= _PLAIN:
        for value in values:
            if not isinstance(value, float | int):  # NumPy's are these too
                raise NoNumberError(f"{value!r} is no number")
    return values
