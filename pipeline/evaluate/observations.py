"""Observations in other forms than a dictionary: a row of a data frame, a named tuple."""

from typing import Any

import numpy as np

from fluxplain.evaluate.evaluator import Observation


def as_observation(x: Any) -> Observation:
    """Return a row as feature → value, with Python's numbers; a plain dictionary is returned as is.

    Parameters
    ----------
    x
        A mapping, a pandas row (from ``iterrows``, ``itertuples`` or ``iloc``), or any named tuple
        or row with ``keys()``, such as sqlite3's.

    Raises
    ------
    TypeError
        If it has no names of features.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, 40], "city": ["Graz", "Linz"]})
    >>> as_observation(frame.iloc[1])
    {'age': 40, 'city': 'Linz'}
    >>> as_observation(frame)
    Traceback (most recent call last):
        ...
    TypeError: an observation must be one row, not a DataFrame: give frame.iloc[0], for example
    """
    return with_python_numbers(x if type(x) is dict else _named(x))


def with_python_numbers(x: Observation) -> Observation:
    """Return an observation without NumPy's numbers and booleans; itself if it has none.

    NumPy's float64 stays: it is a float. An int64 is no int, and would pass for a category.
    """
    if not any(map(_is_foreign, x.values())):
        return x
    return {f: value.item() if _is_foreign(value) else value for f, value in x.items()}  # type: ignore[union-attr]


def _named(x: Any) -> dict[str, Any]:
    if hasattr(x, "columns"):
        raise TypeError(
            f"an observation must be one row, not a {type(x).__name__}: give frame.iloc[0], for "
            "example"
        )
    if callable(getattr(x, "items", None)):  # those of a pandas row are Python's numbers
        return dict(x.items())
    if hasattr(x, "_asdict"):
        return dict(x._asdict())
    if hasattr(x, "keys"):
        return dict(x)
    raise TypeError(
        f"an observation must be a dictionary (feature → value) or a row with names, not a "
        f"{type(x).__name__}: give dict(zip(names, row)), for example"
    )


def _is_foreign(value: object) -> bool:
    return isinstance(value, np.generic) and not isinstance(value, float | str)
