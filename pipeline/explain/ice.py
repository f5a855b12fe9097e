"""ICE curves: the curves of single observations, whose mean is the partial dependence."""

from collections import deque
from typing import NamedTuple

from fluxplain.evaluate import Label
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Table
from fluxplain.explain.curve import Effect, Grid, shown_effect, shown_labels


class IceCurve(NamedTuple):
    """The output on one observation as a function of one feature.

    Attributes
    ----------
    seq
        Number of the observation.
    grid
        The evaluation points.
    effect
        The output at each point; for more than two classes, one such curve per class.
    """

    seq: int
    grid: Grid
    effect: Effect


class IceCurves:
    """The last ``size`` curves of one feature; a class that the model did not know counts as 0.

    References
    ----------
    iPDP, Section 3.2: the answers at one time are the ICE curve of that observation. Goldstein,
    Kapelner, Bleich, Pitkin (2015), "Peeking Inside the Black Box".

    Examples
    --------
    >>> import numpy as np
    >>> ice = IceCurves(2)
    >>> for seq in range(3):
    ...     ice.update(seq, [0.0, 1.0], Table((None,), np.array([[2.0], [seq]])))
    >>> [(curve.seq, curve.effect) for curve in ice.curves]
    [(1, [2.0, 1.0]), (2, [2.0, 2.0])]
    """

    def __init__(self, size: int) -> None:
        self._kept: deque[tuple[int, Grid, tuple[Label | None, ...], Floats]] = deque(maxlen=size)
        self._labels: tuple[Label | None, ...] = ()

    def update(self, seq: int, points: Grid, answers: Table) -> None:
        """Take the curve of one observation, after the smoothed curve has taken it."""
        self._labels = tuple(dict.fromkeys((*self._labels, *answers.labels)))
        self._kept.append((seq, list(points), answers.labels, answers.numbers.copy()))

    @property
    def curves(self) -> list[IceCurve]:
        """The curves, oldest first, with the classes of the smoothed one."""
        shown = shown_labels(self._labels)
        curves = []
        for seq, points, labels, numbers in self._kept:
            known = dict(zip(labels, numbers.T.tolist(), strict=True))
            effects = {label: known.get(label, [0.0] * len(points)) for label in shown}
            curves.append(IceCurve(seq, list(points), shown_effect(effects, len(points))))
        return curves
