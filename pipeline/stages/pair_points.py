"""Packs the points of two features into one list of an evaluation, and back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluxplain.schemas.record import Value

if TYPE_CHECKING:
    from fluxplain.explain.surface import Axes


def joined(axes: "Axes") -> list[Value]:
    """Return the points of both features as one list; empty if one has none yet.

    Examples
    --------
    >>> joined(([0.5, 1.5], ["u", "v", "w"]))
    [2, 0.5, 1.5, 'u', 'v', 'w']
    """
    first, second = axes
    return [len(first), *first, *second] if first and second else []


def split(points: Sequence[Value]) -> "Axes":
    """Return the points of both features, or raise ``ValueError`` for a malformed list.

    Examples
    --------
    >>> split([2, 0.5, 1.5, "u", "v", "w"])
    ([0.5, 1.5], ['u', 'v', 'w'])
    """
    n = points[0]
    if not isinstance(n, int) or isinstance(n, bool) or not 0 < n < len(points) - 1:
        raise ValueError("the points of a pair do not begin with how many the first feature has")
    return [*points[1 : n + 1]], [*points[n + 1 :]]
