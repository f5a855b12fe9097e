"""Which curve a feature has, and the importance of a curve."""

from collections.abc import Sequence

from pipeline.evaluate.compiled import plain
from pipeline.explain import kernels
from pipeline.explain.categories import CategoryCurve, range_and_slopes
from pipeline.explain.curve import PDPCurve
from pipeline.explain.ranks import RankCurve

_deviation = plain(kernels.deviation)


def make_curve(alpha: float, *, categorical: bool, debias: bool = True) -> PDPCurve:
    """Return a curve that has seen nothing.

    Parameters
    ----------
    alpha
        Smoothing of the effects and of the numeric grid points, in (0, 1].
    categorical
        Whether each category has a mean of its own, shown while the category is in the storage;
        else grid points keep their rank and move.
    debias
        Divide by the sum of the smoothing's weights.
    """
    return (CategoryCurve if categorical else RankCurve)(alpha, debias=debias)


def curve_importance(curve: Sequence[float], *, categorical: bool) -> float:
    """Return the importance of a curve: its standard deviation, or range / 4 if categorical.

    References
    ----------
    Greenwell, Boehmke, McCarthy (2018), Section 2.

    Examples
    --------
    >>> curve_importance([0.0, 1.0, 2.0], categorical=False)
    1.0
    >>> curve_importance([0.0, 1.0, 2.0], categorical=True)
    0.5
    """
    return range_and_slopes(curve)[0] if categorical else _deviation(curve)
