"""Converts models between River's objects and arrays, also at the end of a pipeline."""

import logging
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pkgutil import resolve_name
from typing import Any

import numpy as np
from river import compose, ensemble, forest, tree

from fluxplain.evaluate.ensemble import EnsembleEvaluator
from fluxplain.evaluate.generic import final_step
from fluxplain.evaluate.wrapped import WRAPPERS
from fluxplain.forest.members import with_members
from fluxplain.forest.names import UnsupportedError

log = logging.getLogger("fluxplain.forest")


def as_arrays(model: Any) -> Any:
    """Return a model with arrays instead of River's objects, if there are arrays for its class.

    An ensemble without arrays of its own gets members as arrays, if their class has arrays.
    The model itself stays as it is. If its values do not fit into arrays, it is returned, and a
    warning says why.

    Examples
    --------
    >>> from river import forest, preprocessing
    >>> model = as_arrays(preprocessing.StandardScaler() | forest.ARFClassifier(seed=1))
    >>> type(model["ARFClassifier"]).__module__
    'fluxplain.forest.arf_classifier'
    """
    return _with_last(model, _as_arrays)


def as_river(model: Any) -> Any:
    """Return a model with River's own objects; the inverse of :func:`as_arrays`.

    Examples
    --------
    >>> from river import forest
    >>> type(as_river(as_arrays(forest.ARFClassifier(seed=1)))).__module__
    'river.forest.adaptive_random_forest'
    """
    return _with_last(model, _as_river)


def is_of_arrays(model: Any) -> bool:
    """Return whether the trees of a model are arrays, also in a pipeline or an ensemble.

    Examples
    --------
    >>> from river import forest, preprocessing
    >>> model = preprocessing.StandardScaler() | forest.ARFClassifier(seed=1)
    >>> is_of_arrays(model), is_of_arrays(as_arrays(model))
    (False, True)
    """
    from fluxplain.forest.compiled_model import CompiledModel  # noqa: PLC0415  only where needed

    last = final_step(model)
    if type(last) in WRAPPERS:
        return is_of_arrays(getattr(last, WRAPPERS[type(last)]))
    return isinstance(last, CompiledModel) or (
        EnsembleEvaluator.covers(last) and is_of_arrays(last.model)  # type: ignore[attr-defined]
    )


KINDS: dict[type, str] = {
    forest.ARFClassifier: "fluxplain.forest.arf_classifier:ARFClassifier",
    forest.ARFRegressor: "fluxplain.forest.arf_regressor:ARFRegressor",
    tree.HoeffdingAdaptiveTreeClassifier: (
        "fluxplain.forest.adaptive_tree_classifier:HoeffdingAdaptiveTreeClassifier"
    ),
    tree.HoeffdingAdaptiveTreeRegressor: (
        "fluxplain.forest.adaptive_tree_regressor:HoeffdingAdaptiveTreeRegressor"
    ),
    tree.HoeffdingTreeClassifier: "fluxplain.forest.tree_classifier:HoeffdingTreeClassifier",
    tree.HoeffdingTreeRegressor: "fluxplain.forest.tree_regressor:HoeffdingTreeRegressor",
    ensemble.BaggingClassifier: "fluxplain.forest.bagging:BaggingClassifier",
    ensemble.ADWINBaggingClassifier: "fluxplain.forest.bagging:ADWINBaggingClassifier",
    ensemble.LeveragingBaggingClassifier: "fluxplain.forest.bagging:LeveragingBaggingClassifier",
}
"""River's class → ours, which is loaded for such a model only.

Those that wrap a ``model`` are for ``HoeffdingTreeClassifier``.
"""


def _has_arrays(model: Any) -> bool:
    return type(model) in KINDS and type(getattr(model, "model", None)) in {
        type(None),
        tree.HoeffdingTreeClassifier,
    }


def _as_arrays(model: Any) -> Any:
    if _has_arrays(model):
        return _converted(model)
    return _with_parts(model, as_arrays)


def _as_river(model: Any) -> Any:
    from fluxplain.forest.compiled_model import CompiledModel  # noqa: PLC0415  only where needed

    if isinstance(model, CompiledModel):
        return model.to_river()
    return _with_parts(model, as_river)


def _with_parts(model: Any, convert: Callable[[Any], Any]) -> Any:
    """Return an ensemble with converted members, or a wrapper with a converted model."""
    if EnsembleEvaluator.covers(model):
        return with_members(model, convert)
    if type(model) not in WRAPPERS:
        return model
    name = WRAPPERS[type(model)]
    wrapped = convert(getattr(model, name))
    if wrapped is getattr(model, name):
        return model
    changed = deepcopy(model)
    setattr(changed, name, wrapped)
    return changed


def _converted(model: Any) -> Any:
    kind = compiled_kind(KINDS[type(model)])
    try:
        return kind.from_river(model)
    except UnsupportedError as error:
        log.warning("%s stays River's, which is slower: %s", type(model).__name__, error)
        return model


def _with_last(model: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a model whose last step, or which itself, is converted."""
    if type(model) is not compose.Pipeline or not model.steps:
        return convert(model)
    name = next(reversed(model.steps))
    changed = convert(model.steps[name])
    if changed is model.steps[name]:
        return model
    # a new pipeline: a copy would go on with the steps that it has planned
    steps = {**model.steps, name: changed}
    return compose.Pipeline(
        *((each, step if step is changed else deepcopy(step)) for each, step in steps.items())
    )


@cache
def compiled_kind(name: str) -> Any:
    """Return the class of a name, with all that it calls compiled, before an observation waits.

    Numba keeps the result, so it takes long only once on a machine.
    """
    from fluxplain.forest.compiling import announced_compiling  # noqa: PLC0415  Numba loads slowly

    with announced_compiling():
        kind = resolve_name(name)
        model = kind(**next(kind._unit_test_params()))
        for a in range(2):
            model.learn_one({"a": a}, a)
            getattr(model, "predict_proba_one", model.predict_one)({"a": a})
            model.answer_rows(("a",), np.zeros(1), np.zeros((1, 1)))
    return kind
