"""Estimators and pipelines of River."""

from collections.abc import Sequence
from typing import Any

from river import base, compose

from fluxplain.evaluate.generic import final_step
from fluxplain.models.factories import make
from fluxplain.models.scores import FaultClassifier


def from_river(steps: Sequence[Any], *, label: str | None = None, seed: int | None = None) -> Any:
    """Return a pipeline of River's estimators, each behind the one before.

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
