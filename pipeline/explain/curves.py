"""Which curve a feature has."""

from pipeline.explain.categories import CategoryCurve
from pipeline.explain.curve import PDPCurve
from pipeline.explain.ranks import RankCurve


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
