"""Converts models between River's objects and arrays, also at the end of a pipeline."""

import logging
from collections.abc import Callable
from copy import copy
from functools import cache
from pkgutil import resolve_name
from typing import Any

import numpy as np
from river import compose, forest, tree

from fluxplain.forest.names import UnsupportedError

log = logging.getLogger("fluxplain.forest")


def as_arrays(model: Any) -> Any:
    """Return a model with arrays instead of River's objects, if there are arrays for its class.

    The model itself stays as it is. If its values do not fit into arrays, it is returned, and a
    warning says why.

    Examples
    --------
    >>> from river import forest, preprocessing
    >>> model = as_arrays(preprocessing.StandardScaler() | forest.ARFClassifier(seed=1))
    >>> type(model["ARFClassifier"]).__module__
    'fluxplain.forest.arf_classifier'
    """
    return _with_last(model, _converted)


def as_river(model: Any) -> Any:
    """Return a model with River's own objects; the inverse of :func:`as_arrays`.

    Examples
    --------
    >>> from river import forest
    >>> type(as_river(as_arrays(forest.ARFClassifier(seed=1)))).__module__
    'river.forest.adaptive_random_forest'
    """
    from fluxplain.forest.compiled_model import CompiledModel  # noqa: PLC0415  only where needed

    def convert(each: Any) -> Any:
        return each.to_river() if isinstance(each, CompiledModel) else each

    return _with_last(model, convert)


KINDS: dict[type, str] = {
    forest.ARFClassifier: "fluxplain.forest.arf_classifier:ARFClassifier",
    tree.HoeffdingTreeClassifier: "fluxplain.forest.tree_classifier:HoeffdingTreeClassifier",
}
"""River's class → ours, which is loaded for such a model only."""


def _converted(model: Any) -> Any:
    if type(model) not in KINDS:
        return model
    compile_loops()
    try:
        return resolve_name(KINDS[type(model)]).from_river(model)
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
    found = copy(model)
    found.steps = model.steps.copy()
    found.steps[name] = changed
    return found


@cache
def compile_loops() -> None:
    """Compile what forests and trees call, before an observation has to wait for it.

    Numba keeps the result, so it takes long only once on a machine.
    """
    from fluxplain.forest.compiling import announced_compiling  # noqa: PLC0415  Numba loads slowly

    with announced_compiling():
        for name in KINDS.values():
            model = resolve_name(name)()
            for a in range(2):
                model.learn_one({"a": a}, a)
                model.predict_proba_one({"a": a})
                model.answer_rows(("a",), np.zeros(1), np.zeros((1, 1)))
