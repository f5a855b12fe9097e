"""One call that draws whatever explains a model, for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from pipeline.monitor.past import Past, Selection
from pipeline.monitor.plots.curves import curves_figure
from pipeline.monitor.plots.effects import Effects, drawable_ice, effects_of
from pipeline.monitor.plots.frames import Frame, records_of
from pipeline.monitor.plots.importance import importance_figure
from pipeline.monitor.plots.snapshot import snapshot_figure
from pipeline.monitor.plots.stories import story_figure
from pipeline.monitor.plots.style import WIDTH_IN, Picture
from pipeline.monitor.plots.surfaces import surfaces_figure
from pipeline.monitor.surroundings import Story
from pipeline.monitor.text import measured
from schemas import Change, Record
from schemas.change import METHOD_NAMES, Curve
from schemas.explanation import Method


@runtime_checkable
class HasImportances(Protocol):
    """What iPFI and iSAGE have: an importance of each feature now."""

    @property
    def values(self) -> Mapping[str, float]:
        """Feature → importance."""

    @property
    def std_errors(self) -> Mapping[str, float]:
        """Feature → standard error of the importance."""


@runtime_checkable
class HasCurves(HasImportances, Protocol):
    """What iPDP has: a curve of each feature, and those of the last observations."""

    @property
    def curves(self) -> Mapping[str, tuple[list[Any], Any]]:
        """Feature → grid and effect; of several classes, class → effect."""

    @property
    def ice(self) -> Mapping[str, Sequence[Any]]:
        """Feature → curves with ``seq``, ``grid`` and ``effect``."""


@runtime_checkable
class HasSurfaces(HasImportances, Protocol):
    """What iPDP of pairs has: a surface of each pair."""

    @property
    def surfaces(self) -> Mapping[str, tuple[tuple[list[Any], list[Any]], Any]]:
        """Pair → both grids, and the effect; of several classes, class → effect."""


def draw(
    what: HasImportances | Frame | Iterable[Frame | Record],
    feature: str | None = None,
    *,
    change: Change | str | None = None,
    title: str | None = None,
    width_in: float = WIDTH_IN,
) -> Picture:
    """Draw an explanation; a notebook shows what this returns.

    Parameters
    ----------
    what
        An explainer (:class:`~pipeline.explain.IncrementalPFI`, ``IncrementalSAGE``,
        ``IncrementalPDP``, ``IncrementalPairPDP``): what it says now. Or records that the pipeline
        published, as such or as pandas frames, one or a list: importances over time. A frame by
        hand needs the columns ``seq``, ``feature`` and ``value``, and may have ``method``
        (``"ipfi"``, ``"isage"``, ``"ipdp"``), ``std_error``, ``grid`` and ``effect``.
    feature
        Of an explainer, only this feature or pair. Of records, the curves of this feature instead
        of the importances.
    change
        Of records: the story of this change, or of the one with this id, instead.
    title
        The headline; None for a fitting one.
    width_in
        Of the figure, in inches.

    Returns
    -------
    A matplotlib figure, to change or to save as any other.

    Raises
    ------
    ValueError
        If there is nothing to draw; the message says what there is.
    TypeError
        If it is nothing of the above.

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
    if isinstance(what, HasSurfaces):
        return surfaces_figure(_surfaces(what, feature), **given)
    if isinstance(what, HasCurves):
        return curves_figure(_effects(what, feature), **given)
    if isinstance(what, HasImportances):
        return _draw_importances(what, feature, given)
    if isinstance(what, Iterable):
        records = [record for each in what for record in _records(each)]
        return _draw_records(records, feature, change, given)
    raise TypeError(f"cannot draw {type(what).__name__}: give an explainer, records or a frame")


def _records(what: Frame | Record) -> Sequence[Record]:
    return records_of(what) if isinstance(what, Frame) else [what]


def _draw_records(
    records: Sequence[Record], feature: str | None, change: Change | str | None, given: Any
) -> Picture:
    if change is not None:
        story = Story(_found(records, change))
        Past(Selection(), [story]).take(records)
        return story_figure(story, **given)
    past = Past.of(records)
    if feature is None:
        return importance_figure(past.state, **given)
    if (pair := past.curves.get(feature)) and pair[-1].second_grid:
        return surfaces_figure({feature: pair[-1]}, **given)
    effects = effects_of(past, features=[feature])
    if not effects:
        known = [each.feature for each in effects_of(past)]
        raise ValueError(_no_feature(feature, known))
    return curves_figure(effects, **given)


def _found(records: Sequence[Record], change: Change | str) -> Change:
    if isinstance(change, Change):
        return change
    changes = [record for record in records if isinstance(record, Change)]
    for record in changes:
        if record.id == change:
            return record
    known = ", ".join(record.id for record in changes[-10:])
    raise ValueError(f"there is no change {change!r} among the records: {known or 'there is none'}")


def _draw_importances(what: HasImportances, feature: str | None, given: Any) -> Picture:
    values = dict(_chosen(what.values, feature))
    method = _METHODS.get(type(what).__name__)
    name = "Importance" if method is None else METHOD_NAMES[method]
    title = {"title": f"{name}: what the model relies on now"}
    return snapshot_figure(values, what.std_errors, unit="loss", **(title | given))


_METHODS: dict[str, Method] = {"IncrementalPFI": "ipfi", "IncrementalSAGE": "isage"}


def _effects(what: HasCurves, feature: str | None) -> list[Effects]:
    values, errors = what.values, what.std_errors
    scale = max(map(abs, values.values()), default=0.0)
    curves = {f: c for f, c in _chosen(what.curves, feature).items() if c[0]}
    if not curves:
        raise ValueError("there is no curve yet: the explainer is still warming up")
    return [
        Effects(
            name,
            [_curve(grid, effect)],
            drawable_ice(
                each for each in what.ice.get(name, ()) if not isinstance(each.effect, Mapping)
            ),
            measured(values[name], errors[name], scale),
        )
        for name, (grid, effect) in sorted(curves.items(), key=lambda item: -values[item[0]])
    ]


def _surfaces(what: HasSurfaces, feature: str | None) -> dict[str, Curve]:
    surfaces = {
        name: _curve(first, effect, second)
        for name, ((first, second), effect) in _chosen(what.surfaces, feature).items()
        if first and second
    }
    if not surfaces:
        raise ValueError("there is no surface yet: the explainer is still warming up")
    return surfaces


def _curve(grid: list[Any], effect: Any, second: list[Any] | None = None) -> Curve:
    if isinstance(effect, Mapping):
        return Curve(-1, grid, list(effect.values()), list(effect), second)
    return Curve(-1, grid, effect, None, second)


def _chosen(all_of_them: Mapping[str, Any], feature: str | None) -> Mapping[str, Any]:
    if feature is None:
        return all_of_them
    if feature not in all_of_them:
        raise ValueError(_no_feature(feature, list(all_of_them)))
    return {feature: all_of_them[feature]}


def _no_feature(feature: str, known: Sequence[str]) -> str:
    return f"nothing is known of {feature!r}; known: {', '.join(known[:20]) or 'nothing'}"
