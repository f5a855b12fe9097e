"""Importances on a common scale, comparable across losses and times."""

from collections.abc import Callable, Mapping
from typing import Literal

SCALES: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "range": lambda values: max(values) - min(values),
}
"""Divisors of importances."""


def normalized(
    values: Mapping[str, float], by: Literal["sum", "range"] = "sum"
) -> dict[str, float]:
    """Return importances divided by their sum or by their range.

    Nothing is shifted: an importance of 0 stays 0, and negative ones stay negative. Divided by the
    range, they lie in [0, 1] if the smallest is 0. Divided by the sum, they are shares that add up
    to 1; if the sum is negative, as for a model worse than its own mean, all signs change.

    Parameters
    ----------
    values
        Feature → importance, of any explainer or baseline; at least one.
    by
        ``"sum"``, or ``"range"``: the largest minus the smallest.

    Returns
    -------
    Feature → normalized importance; 0 for all if the sum or the range is 0.

    Raises
    ------
    ValueError
        If ``by`` is anything else, or there are no values.

    References
    ----------
    iPFI, Section 4, Experiment A. In the authors' iXAI these are the modes ``"sum"`` and
    ``"delta"``.

    Examples
    --------
    >>> normalized({"a": 2.0, "b": 3.0, "c": -1.0})
    {'a': 0.5, 'b': 0.75, 'c': -0.25}
    >>> normalized({"a": 2.0, "b": 4.0, "c": 0.0}, by="range")
    {'a': 0.5, 'b': 1.0, 'c': 0.0}
    """
    if by not in SCALES:
        raise ValueError(f"by is {by!r}, but must be one of {', '.join(SCALES)}")
    if not values:
        raise ValueError("values is empty: give at least one importance")
    scale = SCALES[by](list(values.values()))
    return {feature: value / scale if scale else 0.0 for feature, value in values.items()}
