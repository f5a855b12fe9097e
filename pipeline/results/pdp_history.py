"""History of a feature's iPDP: the current curve, earlier ones, and ICE curves."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import orjson

from fluxplain.results.series import Thinning
from fluxplain.schemas import Change, Explanation
from fluxplain.schemas.change import Curve
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.numbers import are_moderate
from fluxplain.schemas.record import Label

Floats = npt.NDArray[np.float64]

MAX_EARLIER = 12
"""Earlier curves to keep for a feature; more could not be distinguished on a chart."""

NO_ICE = b"[]"


class PdpHistory:
    """Curves of one feature, stored as JSON, which takes a fifth of the memory of Python's numbers.

    Earlier curves are evenly spaced, without standard errors. ``current`` is None if there was no
    room for it.
    """

    def __init__(self) -> None:
        self.current: bytes | None = None
        self.ice: bytes = NO_ICE
        self.earlier: list[bytes] = []
        self._thinning = Thinning()

    @property
    def size(self) -> int:
        """Bytes of all curves."""
        return len(self.current or b"") + len(self.ice) + sum(map(len, self.earlier))

    @property
    def curves(self) -> list[Curve]:
        """Earlier curves, then the current one."""
        texts = [*self.earlier, *([] if self.current is None else [self.current])]
        return [Curve(**orjson.loads(text)) for text in texts]

    @property
    def ice_curves(self) -> list[Curve]:
        """ICE curves that can be plotted: those of models with one output."""
        return list(filter(is_drawable, (Curve(**fields) for fields in orjson.loads(self.ice))))

    def add(self, curve: Curve, ice: Sequence[Ice], *, most: int) -> bool:
        """Add the newest curves within ``most`` bytes; return whether all of them fit."""
        if self.current is not None and self._thinning.keeps_next():
            former = Curve(**orjson.loads(self.current))
            self.earlier.append(compact(orjson.dumps(replace(former, effect_std_error=None))))
        self.current, self.ice = (compact(orjson.dumps(each)) for each in (curve, ice))
        has_ice = self.ice != NO_ICE
        self.trim(most)
        return self.current is not None and has_ice == (self.ice != NO_ICE)

    def trim(self, most: int) -> None:
        """Drop curves until ``most`` bytes are enough: earlier ones first, the current one last."""
        while len(self.earlier) > MAX_EARLIER or (self.earlier and self.size > most):
            self.earlier = self.earlier[::2] if len(self.earlier) > 1 else []
            self._thinning.stride *= 2
        if self.size > most:
            self.ice = NO_ICE
        if self.size > most:
            self.current = None


def compact(text: bytes) -> bytes:
    """Copy the bytes, to free the up to 16 KB that orjson over-allocates."""
    return memoryview(text).tobytes()


def curve_of(e: Explanation) -> Curve | None:
    """Return the curve or surface of an explanation; None if it has none that can be plotted."""
    if not e.grid or not e.effect:
        return None
    curve = Curve(e.seq, e.grid, e.effect, e.classes, e.second_grid, e.effect_std_error)
    if not is_drawable(curve):
        return None
    return (
        curve
        if curve.effect_std_error is None or errors_of(curve)
        else replace(curve, effect_std_error=None)
    )


def drawable_ice(e: Explanation) -> list[Ice]:
    """Return the ICE curves of an explanation that can be plotted."""
    return [
        each
        for each in e.ice or ()
        if is_drawable(Curve(each.seq, each.grid, each.effect, e.classes))
    ]


def is_drawable(curve: Curve) -> bool:
    """Return whether a curve has one moderate number for each class and point."""
    shape = [len(axis) for axis in (curve.classes, curve.grid, curve.second_grid) if axis]
    try:
        effect = np.array(curve.effect, np.float64)
    except ValueError:
        return False
    points = [v for v in (*curve.grid, *(curve.second_grid or ())) if not isinstance(v, str)]
    return effect.shape == tuple(shape) and are_moderate(effect.flat) and are_moderate(points)


def effect_of(curve: Curve) -> dict[Label | None, Floats]:
    """Return class → effect of a drawable curve; the key is None if there is only one output."""
    effect = np.array(curve.effect, np.float64)
    return dict(zip(curve.classes, effect, strict=True)) if curve.classes else {None: effect}


def errors_of(curve: Curve) -> dict[Label | None, Floats]:
    """Return class → standard errors of a drawable curve, NaN where unknown; none if it has none.

    None too if they do not fit the effect, are negative, or too large.
    """
    errors = np.array(np.nan)
    with suppress(ValueError):
        errors = np.array(curve.effect_std_error, np.float64)
    fits = errors.shape == np.array(curve.effect, np.float64).shape
    known = errors[~np.isnan(errors)] if fits else errors
    if not fits or not are_moderate(known.flat) or (known < 0.0).any():
        return {}
    return dict(zip(curve.classes, errors, strict=True)) if curve.classes else {None: errors}


def drawable_curves(change: Change) -> list[tuple[str, Curve]]:
    """Return the known curves before and after; only the latter if they have no class in common."""
    both = (("before", change.curve_before), ("after", change.curve_after))
    curves = [(name, curve) for name, curve in both if curve is not None and is_drawable(curve)]
    if len(curves) == 2 and not set(effect_of(curves[0][1])) & set(effect_of(curves[1][1])):
        return curves[1:]
    return curves
