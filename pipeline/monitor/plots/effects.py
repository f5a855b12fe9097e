"""Partial dependence: what there is to draw of each feature."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.monitor.past import Past, curve_of, is_drawable
from pipeline.monitor.text import measured
from schemas.change import Curve
from schemas.explanation import Ice
from schemas.record import Label

Floats = npt.NDArray[np.float64]


EARLIER = 6
"""Earlier curves in a panel: more could not be told apart."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What is drawn of one feature.

    Attributes
    ----------
    feature
        Its name.
    curves
        Its curves over time; the last is the one now.
    ice
        Curves of single observations.
    importance
        Value ± standard error now, or nothing.
    """

    feature: str
    curves: Sequence[Curve]
    ice: Sequence[Curve] = ()
    importance: str = ""


def effects_of(past: Past, *, features: Iterable[str] | None = None) -> list[Effects]:
    """Return the features that have curves, the most important first; pairs have surfaces."""
    wanted = None if features is None else set(features)
    latest = {
        f: e
        for (f, method), e in past.state.latest.items()
        if method == "ipdp" and e.second_grid is None and (wanted is None or f in wanted)
    }
    scale = max((abs(e.value) for e in latest.values()), default=0.0)
    return [
        Effects(
            feature,
            [curve for curve in past.curves[feature] if curve.second_grid is None],
            drawable_ice(e.ice or ()),
            measured(e.value, e.std_error, scale),
        )
        for feature, e in sorted(latest.items(), key=lambda item: -item[1].value)
        if curve_of(e) is not None
    ]


def drawable_ice(ice: Iterable[Ice]) -> list[Curve]:
    """Return ICE curves as curves; those of several classes are left out."""
    curves = [Curve(each.seq, each.grid, each.effect) for each in ice]
    return [curve for curve in curves if is_drawable(curve)]


def effect_of(curve: Curve) -> dict[Label | None, Floats]:
    """Return class → effect; None → effect where there is one only."""
    effect = np.array(curve.effect, np.float64)
    return dict(zip(curve.classes, effect, strict=True)) if curve.classes else {None: effect}


def earlier_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Return some of the curves before the last one, evenly spread; no pairs, no other classes."""
    before = [curve for curve in curves[:-1] if curve.classes == curves[-1].classes]
    n = min(len(before), EARLIER)
    return [before[int((i + 0.5) * len(before) / n)] for i in range(n)]
