"""The partial dependence of a feature, or of a pair, before a change and after it."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from pipeline.monitor.past import is_drawable
from pipeline.monitor.plots.effects import effect_of
from pipeline.monitor.plots.labels import shortened
from pipeline.monitor.plots.points import Positions, draw_curve, number_points
from pipeline.monitor.plots.style import (
    TEXT_PT,
    Look,
    Piece,
    add_panel,
    heading,
    number_values,
    size_in,
    title_piece,
)
from pipeline.monitor.plots.surfaces import draw_surface, surface_limits
from schemas import Change
from schemas.change import Curve
from schemas.record import Label

ROOMY_IN = 2.6
"""Width of a panel from which on there is room to say when, too."""


def drawable_curves(change: Change) -> list[tuple[str, Curve]]:
    """Return what there is of the curves before and after; of other classes only the latter."""
    both = (("before", change.curve_before), ("after", change.curve_after))
    curves = [(name, curve) for name, curve in both if curve is not None and is_drawable(curve)]
    if len(curves) == 2 and not set(effect_of(curves[0][1])) & set(effect_of(curves[1][1])):
        return curves[1:]
    return curves


def draw_before_after(
    figure: Figure,
    change: Change,
    looks: tuple[Look, Look],
    *,
    left: float,
    top: float,
    width: float,
    height: float,
) -> None:
    """Draw a feature's curves into one panel, or a pair's surfaces into two; places in inches.

    With more than two classes: of the class whose curve moved most.
    """
    curves = drawable_curves(change)
    label = _moved_most([curve for _, curve in curves])
    of_class = "" if label is None else f" of class {shortened(str(label), 0.6, TEXT_PT)}"
    if any(curve.second_grid for _, curve in curves):
        _draw_surfaces(
            figure, change, curves, label, left=left, top=top, width=width, height=height
        )
        return
    axes = add_panel(figure, left=left, top=top, width=width, height=height)
    positions = Positions([curve.grid for _, curve in curves])
    pieces = []
    for name, curve in curves:
        look = looks[name == "after"]
        draw_curve(axes, positions, curve, _only(label, look, curve), dashed=name == "before")
        when = f" ({curve.seq:,})" if width > ROOMY_IN else ""
        pieces.append(Piece(f"{name}{when}", look.text, weight="bold"))
    heading(axes, title_piece("iPDP"), *pieces)
    number_points(axes, positions)
    number_values(axes, 4)
    axes.set_xlabel(shortened(change.feature or "", width, TEXT_PT))
    axes.set_ylabel(f"model's output{of_class}")
    axes.yaxis.set_label_coords(-0.47 / size_in(axes)[0], 0.5)


def _draw_surfaces(
    figure: Figure,
    change: Change,
    curves: list[tuple[str, Curve]],
    label: Label | None,
    *,
    left: float,
    top: float,
    width: float,
    height: float,
) -> None:
    first, second = (change.feature or "|").split("|", 1)
    effects = [effect_of(curve)[label] for _, curve in curves]
    limits = surface_limits(effects)
    pitch = (width + 0.2) / 2
    for i, ((name, curve), effect) in enumerate(zip(curves, effects, strict=True)):
        axes = add_panel(figure, left=left + i * pitch, top=top, width=pitch - 0.2, height=height)
        draw_surface(axes, curve, effect, limits, names=(first, second))
        heading(axes, title_piece(name))
        if i:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)


def _only(label: Label | None, look: Look, curve: Curve) -> Mapping[Label | None, Look | None]:
    return {each: look if each == label else None for each in effect_of(curve)}


def _moved_most(curves: list[Curve]) -> Label | None:
    """Return the class whose curve moved most, of more than two; None if there is one curve."""
    effects = [effect_of(curve) for curve in curves]
    labels = [label for label in effects[0] if label in effects[-1]]

    def moved(label: Label | None) -> float:
        first, last = effects[0][label], effects[-1][label]
        if first.shape != last.shape or len(effects) == 1:
            return float(np.ptp(last))
        return float(np.abs(last - first).max())

    return max(labels, key=moved)
