"""Plots the iPDP of a feature or a pair before and after a change."""

import numpy as np
from matplotlib.figure import Figure

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.curve_panels import Positions, draw_curve, effect_of, number_points
from fluxplain.monitor.figures.effect_maps import draw_surface, surface_limits
from fluxplain.monitor.figures.text_fit import shortened
from fluxplain.results.pdp_history import is_drawable
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Label

ROOMY_IN = 2.6
"""Width in inches from which a panel has room for the seq of each curve."""


def drawable_curves(change: Change) -> list[tuple[str, Curve]]:
    """Return the known curves before and after; only the latter if they have no class in common."""
    both = (("before", change.curve_before), ("after", change.curve_after))
    curves = [(name, curve) for name, curve in both if curve is not None and is_drawable(curve)]
    if len(curves) == 2 and not set(effect_of(curves[0][1])) & set(effect_of(curves[1][1])):
        return curves[1:]
    return curves


def draw_before_after(
    figure: Figure, change: Change, looks: tuple[style.Look, style.Look], box: style.Box
) -> None:
    """Draw a feature's curves into one panel, or a pair's surfaces into two.

    With more than two classes, draw the class whose curve moved most.
    """
    curves = drawable_curves(change)
    label = _moved_most([curve for _, curve in curves])
    if any(curve.second_grid for _, curve in curves):
        limits = surface_limits([effect_of(curve)[label] for _, curve in curves])
        pitch = (box.width + 0.2) / 2
        for i, (name, curve) in enumerate(curves):
            half = box._replace(left=box.left + i * pitch, width=pitch - 0.2)
            axes = style.add_panel(figure, half)
            pair, effect = change.feature or "|", effect_of(curve)[label]
            draw_surface(axes, curve, effect, limits, pair=pair)
            style.heading(axes, name)
            if i:
                axes.set_ylabel("")
                axes.tick_params(labelleft=False)
        return
    axes = style.add_panel(figure, box)
    positions = Positions([curve.grid for _, curve in curves])
    pieces = []
    for name, curve in curves:
        look = looks[name == "after"]
        draw_curve(axes, positions, curve, {label: look}, dashed=name == "before")
        when = f" ({curve.seq:,})" if box.width > ROOMY_IN else ""
        pieces.append(style.Piece(f"{name}{when}", look.text, weight="bold"))
    style.heading(axes, "iPDP", *pieces)
    number_points(axes, positions)
    style.number_values(axes, 4)
    axes.set_xlabel(shortened(change.feature or "", box.width, style.TEXT_PT))
    of_class = "" if label is None else f" of class {shortened(str(label), 0.6, style.TEXT_PT)}"
    style.label_values(axes, f"model's output{of_class}")


def _moved_most(curves: list[Curve]) -> Label | None:
    """Return the class whose curve moved most; None if there are no classes."""
    effects = [effect_of(curve) for curve in curves]
    labels = [label for label in effects[0] if label in effects[-1]]

    def moved(label: Label | None) -> float:
        first, last = effects[0][label], effects[-1][label]
        if first.shape != last.shape or len(effects) == 1:
            return float(np.ptp(last))
        return float(np.abs(last - first).max())

    return max(labels, key=moved)
