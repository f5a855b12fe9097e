"""What an explainer asks the model about one observation."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from pipeline.evaluate import Value
from pipeline.evaluate.inputs import Floats, as_floats
from pipeline.explain.kernels import Places

Row = dict[str, Value]


class Question(Protocol):
    """The inputs that one explainer asks about, drawn once, in either of two forms."""

    @property
    def size(self) -> int:
        """How many inputs there are."""
        ...

    def replacements(self) -> list[Row]:
        """Return for each input what is replaced; nothing in the observation itself."""
        ...

    def fill(self, features: tuple[str, ...], rows: Floats) -> None:
        """Replace it in whole inputs.

        Parameters
        ----------
        features
            Those of the observation.
        rows
            The observation in each row, shape (inputs, features).

        Raises
        ------
        NoNumberError
            If what is replaced is no number.
        """
        ...


@lru_cache(maxsize=16)
def columns_of(features: tuple[str, ...], some: tuple[str, ...]) -> Places:
    """Return where some of the features are among them."""
    return np.array([features.index(feature) for feature in some], dtype=np.intp)


def drawn(rows: Sequence[Row], features: Sequence[str]) -> Floats:
    """Return the values of some features in stored observations, shape (rows, features)."""
    values = [row[feature] for row in rows for feature in features]
    return as_floats(values).reshape(len(rows), len(features))
