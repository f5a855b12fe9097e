"""Makes models and their parts from settings, and pipelines of River."""

from collections.abc import Mapping, Sequence
from typing import Any

from river import base, compose

from fluxplain.evaluate.generic import final_step
from fluxplain.loading.import_strings import load, parameters
from fluxplain.models.scores import FaultClassifier

FACTORY = "factory"

SEEDS = ("seed", "random_state")
"""Names of the seed's parameter in River and scikit-learn."""


def make(what: Any, *args: object, seed: int | None = None, **more: object) -> Any:
    """Call the factory that a reference, or a table with a ``factory``, names.

    Parameters
    ----------
    what
        ``"module:name"``, or a table of ``factory = "module:name"`` and its arguments, which may be
        such tables too. In a program also an object or, with further arguments, a function of
        these.
    args, more
        Further arguments.
    seed
        Passed to a factory that takes a ``seed`` or ``random_state``, unless its table has one.

    Raises
    ------
    ValueError
        If something cannot be loaded or called.

    Examples
    --------
    >>> bagging = {
    ...     "factory": "river.ensemble:BaggingClassifier",
    ...     "model": {"factory": "river.tree:HoeffdingTreeClassifier", "max_depth": 3},
    ... }
    >>> model = make(bagging, seed=7)
    >>> model.seed, model.model.max_depth
    (7, 3)
    """
    if isinstance(what, str):
        what = {FACTORY: what}
    if not _is_table(what):
        return what(*args, **more) if args or more else what
    reference = what[FACTORY]
    if not isinstance(reference, str) or ":" not in reference:
        raise ValueError(f"{FACTORY} is {reference!r}, but must be 'module:name'")
    given = {name: _made(value, seed) for name, value in what.items() if name != FACTORY}
    try:
        factory = load(reference)
    except ValueError as error:
        raise ValueError(f"{reference!r}: {error}") from error
    taken = parameters(factory)
    if seed is not None and not given.keys() & SEEDS:
        given |= {name: seed for name in SEEDS if name in taken}
    try:
        return factory(*args, **more, **given)
    except Exception as error:  # a user's factory may raise anything
        raise ValueError(
            f"{reference!r}, called with {given}, failed: {type(error).__name__}: "
            + " ".join(str(error).split())
        ) from error


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and FACTORY in value


def _made(value: object, seed: int | None) -> object:
    if isinstance(value, list):
        return [_made(each, seed) for each in value]
    return make(value, seed=seed) if _is_table(value) else value


def from_river(steps: Sequence[Any], *, label: str | None = None, seed: int | None = None) -> Any:
    """Return a pipeline of River's estimators, in the given order.

    Parameters
    ----------
    steps
        Each a ``"module:name"``, a table with a ``factory`` and its arguments, or an estimator; see
        :func:`~fluxplain.models.factories.make`.
    label
        The label's type. For ``"boolean"`` an anomaly detector at the end becomes a
        :class:`~fluxplain.models.FaultClassifier`.
    seed
        Passed to each estimator that takes one and has none.

    Raises
    ------
    ValueError
        If a step cannot be made, or there is none.

    Examples
    --------
    >>> model = from_river(
    ...     [
    ...         "river.preprocessing:StandardScaler",
    ...         {"factory": "river.linear_model:LogisticRegression", "l2": 0.1},
    ...     ]
    ... )
    >>> model.learn_one({"a": 1.0}, True)
    >>> str(model)
    'StandardScaler | LogisticRegression'
    """
    if isinstance(steps, str) or not steps:
        raise ValueError("steps must be a list of at least one estimator")
    made = [make(step, seed=seed) for step in steps]
    for step in made:
        if not isinstance(step, base.Estimator):
            raise ValueError(f"steps has a {type(step).__name__}, which is not a River estimator")
    model = made[0] if len(made) == 1 else compose.Pipeline(*made)
    is_detector = isinstance(final_step(model), base.AnomalyDetector | base.AnomalyFilter)
    return FaultClassifier(model) if is_detector and label == "boolean" else model
