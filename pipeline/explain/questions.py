"""What an explainer asks the model about one observation."""

from functools import lru_cache
from typing import Protocol

import numpy as np

from pipeline.evaluate import Observation, Value
from pipeline.evaluate.inputs import Floats, NoNumberError, as_floats
from pipeline.explain.kernels import Places

Row = dict[str, Value]


class Observed:
    """An observation, and its values as an array.

    Attributes
    ----------
    x
        The observation.
    features
        Its features, in its order.
    numbers
        Its values; None if they are not all numbers.
    """

    __slots__ = ("features", "numbers", "x")

    def __init__(self, x: Observation) -> None:
        self.x = x
        self.features = tuple(x)
        self.numbers: Floats | None
        try:
            self.numbers = as_floats(x.values())
        except NoNumberError:
            self.numbers = None

    def some(self, features: tuple[str, ...]) -> Floats | None:
        """Return the values of some features; None if :attr:`numbers` is."""
        if self.numbers is None or features == self.features:
            return self.numbers
        return self.numbers[columns_of(self.features, features)]


class Question(Protocol):
    """The inputs that one explainer asks about, drawn once, in either of two forms."""

    @property
    def size(self) -> int:
        """How many inputs there are."""
        ...

    def replacements(self) -> list[Row]:
        """Return for each input what is replaced; nothing in the observation itself."""
        ...

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs.

        Parameters
        ----------
        features
            Those of the observation.
        rows
            The observation in each row, shape (inputs, features).
        begin
            The first row of this question.

        Raises
        ------
        NoNumberError
            If what is replaced is no number.
        """
        ...


class Replaced:
    """Any replacements, after an input in which nothing is replaced.

    Parameters
    ----------
    rows
        For each input what is replaced.
    """

    __slots__ = ("rows", "size")

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.size = 1 + len(rows)

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        return [{}, *self.rows]

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        columns = {feature: column for column, feature in enumerate(features)}
        for place, row in enumerate(self.rows, start=begin + 1):
            rows[place, [columns[feature] for feature in row]] = as_floats(row.values())


@lru_cache(maxsize=16)
def columns_of(features: tuple[str, ...], some: tuple[str, ...]) -> Places:
    """Return where some of the features are among them."""
    return np.array([features.index(feature) for feature in some], dtype=np.intp)
