"""One function that plots any explanation, for notebooks, and the figure of current importances."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from matplotlib.axes import Axes

from fluxplain.monitor.figures import style
from fluxplain.monitor.figures.change_figure import story_figure
from fluxplain.monitor.figures.effect_figures import (
    Effects,
    curves_figure,
    effects_of,
    surfaces_figure,
    surfaces_of,
)
from fluxplain.monitor.figures.importance_over_time import importance_figure
from fluxplain.monitor.figures.style import WIDTH_IN, Picture
from fluxplain.monitor.figures.text_fit import short_names, text_width
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.frames import Frame, records_of
from fluxplain.results.lookup import find_drift
from fluxplain.results.pdp_history import is_drawable
from fluxplain.results.selection import SelectedResults
from fluxplain.schemas import Change, Record
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import METHOD_NAMES, METHODS, Method
from fluxplain.schemas.wording import measured

MAX_ROWS = 25

ROW_IN, NAME_IN = 0.22, 1.6


@runtime_checkable
class Explainer(Protocol):
    """An explainer of :mod:`fluxplain.explain`, with a current importance for each feature."""

    @property
    def values(self) -> Mapping[str, float]:
        """Feature → importance."""

    @property
    def std_errors(self) -> Mapping[str, float]:
        """Feature → standard error of the importance."""


def draw(
    what: Explainer | Frame | Iterable[Frame | Record],
    feature: str | None = None,
    *,
    change: Change | str | None = None,
    title: str | None = None,
    width_in: float = WIDTH_IN,
) -> Picture:
    """Plot an explanation; a notebook displays the returned figure.

    Parameters
    ----------
    what
        An explainer (:class:`~fluxplain.explain.IncrementalPFI`, ``IncrementalSAGE``,
        ``IncrementalPDP``, ``IncrementalPairPDP``), to plot its current values. Or published
        records, to plot importances over time: a list of records, a pandas frame, or a list of
        frames. A handmade frame needs the columns ``seq``, ``feature`` and ``value``, and may have
        ``method`` (``"ipfi"``, ``"isage"``, ``"ipdp"``), ``std_error``, ``grid`` and ``effect``.
    feature
        With an explainer: only this feature or pair. With records: the curves of this feature
        instead of the importances.
    change
        With records: plot this change instead of the importances, given itself or by at least the
        first 4 digits of its id.
    title
        Title of the figure; None for a default.
    width_in
        Width of the figure, in inches.

    Returns
    -------
    A matplotlib figure, which can be changed and saved like any other.

    Raises
    ------
    ValueError
        If there is nothing to plot; the message lists what is available.
    TypeError
        If ``what`` is none of the above.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"seq": [10, 20], "feature": ["age", "age"], "value": [0.1, 0.2]})
    >>> figure = draw(frame)
    >>> [axes.get_title(loc="left") or axes.texts[0].get_text() for axes in figure.axes]
    ['iPFI']
    """
    given: dict[str, Any] = {"width_in": width_in} | ({} if title is None else {"title": title})
    if isinstance(what, Frame):
        return _draw_records(records_of(what), feature, change, given)
    if hasattr(what, "surfaces"):
        return surfaces_figure(_surfaces(what, feature), **given)
    if hasattr(what, "curves"):
        return curves_figure(_effects(what, feature), **given)
    if isinstance(what, Explainer):
        return _draw_importances(what, feature, given)
    if isinstance(what, Iterable):
        records = [record for each in what for record in _records(each)]
        return _draw_records(records, feature, change, given)
    raise TypeError(f"cannot plot {type(what).__name__}: give an explainer, records or a frame")


def _records(what: Frame | Record) -> Sequence[Record]:
    return records_of(what) if isinstance(what, Frame) else [what]


def _draw_records(
    records: Sequence[Record], feature: str | None, change: Change | str | None, given: Any
) -> Picture:
    if change is not None:
        changes = [record for record in records if isinstance(record, Change)]
        drift = change if isinstance(change, Change) else find_drift(changes, change)
        context = ChangeContext(drift)
        SelectedResults.of(records, contexts=[context])
        return story_figure(context, **given)
    view = SelectedResults.of(records).view
    if feature is None:
        return importance_figure(view, **given)
    if surface := surfaces_of(view).get(feature):
        return surfaces_figure({feature: surface}, **given)
    effects = effects_of(view, features=[feature])
    if not effects:
        raise ValueError(_no_feature(feature, [each.feature for each in effects_of(view)]))
    return curves_figure(effects, **given)


def _draw_importances(what: Explainer, feature: str | None, given: Any) -> Picture:
    values = dict(_selected(what.values, feature))
    method = _METHODS.get(type(what).__name__)
    name = "Importance" if method is None else METHOD_NAMES[method]
    title = {"title": f"{name}: what the model relies on now"}
    return _snapshot_figure(values, what.std_errors, unit="loss", **(title | given))


_METHODS: dict[str, Method] = {f"Incremental{m.title[1:]}": n for n, m in METHODS.items()}


def _effects(what: Any, feature: str | None) -> list[Effects]:
    values, errors = what.values, what.std_errors
    scale = max(map(abs, values.values()), default=0.0)
    curves = {f: c for f, c in _selected(what.curves, feature).items() if c[0]}
    if not curves:
        raise ValueError("there is no curve yet: the explainer is still warming up")
    texts = {name: measured(values[name], errors[name], scale) for name in curves}
    return [
        Effects(name, [_curve(*curves[name])], _ice(what.ice.get(name, ())), texts[name])
        for name in sorted(curves, key=lambda name: -values[name])
    ]


def _ice(ice: Sequence[Any]) -> list[Curve]:
    """Return the ICE curves of a model with one output."""
    curves = [Curve(e.seq, e.grid, e.effect) for e in ice if not isinstance(e.effect, Mapping)]
    return [curve for curve in curves if is_drawable(curve)]


def _surfaces(what: Any, feature: str | None) -> dict[str, Curve]:
    surfaces = {
        name: _curve(first, effect, second)
        for name, ((first, second), effect) in _selected(what.surfaces, feature).items()
        if first and second
    }
    if not surfaces:
        raise ValueError("there is no surface yet: the explainer is still warming up")
    return surfaces


def _curve(grid: list[Any], effect: Any, second: list[Any] | None = None) -> Curve:
    if isinstance(effect, Mapping):
        return Curve(-1, grid, list(effect.values()), list(effect), second)
    return Curve(-1, grid, effect, None, second)


def _selected(values: Mapping[str, Any], feature: str | None) -> Mapping[str, Any]:
    if feature is None:
        return values
    if feature not in values:
        raise ValueError(_no_feature(feature, list(values)))
    return {feature: values[feature]}


def _no_feature(feature: str, known: Sequence[str]) -> str:
    return f"there is no explanation of {feature!r}; there are: {', '.join(known[:20]) or 'none'}"


def _snapshot_figure(
    values: Mapping[str, float],
    std_errors: Mapping[str, float],
    *,
    title: str,
    unit: str,
    width_in: float = style.WIDTH_IN,
) -> style.Picture:
    """Return a figure with one row per feature, the most important first: importance ± error.

    Features within two standard errors of 0 are grey.
    """
    ranked = sorted(values, key=lambda feature: -abs(values[feature]))[:MAX_ROWS]
    names = list(short_names(ranked, NAME_IN, style.TEXT_PT).values())
    height = ROW_IN * max(1, len(ranked))
    left = style.MARGIN_IN + 0.08
    left += max((text_width(name, style.TEXT_PT) for name in names), default=0.0)
    note = _note(len(ranked), len(values))
    with style.styled():
        figure, top = style.titled_figure(
            width_in, title=title, note=note, body_in=height + 0.5, left=left
        )
        room = width_in - left - style.MARGIN_IN
        [axes] = style.add_panels(figure, style.Box(left, top, room, height))
        for place, feature in enumerate(ranked):
            _draw_row(axes, place, values[feature], std_errors.get(feature, 0.0))
        axes.axvline(0, color=style.FAINT, lw=0.8, zorder=1)
        style.name_rows(axes, names)
        axes.set_xlabel(f"importance [{unit}]")
    return figure


def _draw_row(axes: Axes, place: int, value: float, std_error: float) -> None:
    error = std_error if math.isfinite(std_error) else 0.0
    color = style.LOOKS[0].color if abs(value) > 2 * error else style.GREY
    axes.plot([0, value], [place, place], color=color, lw=0.8, zorder=2)
    axes.errorbar(
        value, place, xerr=error, fmt="o", ms=4.5, color=color, elinewidth=1.3, capsize=2, zorder=3
    )


def _note(shown: int, total: int) -> str:
    note = "Whiskers: ± standard error. Grey: within two standard errors of 0."
    if total > shown:
        note += f" The {total - shown:,} least important features are left out."
    return note
