"""River's metrics as losses: those that are the mean of a loss of each record."""

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

from fluxplain.evaluate import Label, Output

OF_CLASSES = "cross_entropy, brier or zero_one"


class Metric(Protocol):
    """One of ``river.metrics``."""

    def update(self, y_true: Any, y_pred: Any) -> None:
        """Take the next label and output."""

    def get(self) -> float:
        """Return the value over all records."""


class RiverLoss:
    """A metric's value on a single record, such as that of ``SMAPE``.

    Examples
    --------
    >>> from river import metrics
    >>> RiverLoss(metrics.MAPE())(4.0, 5.0)
    25.0
    """

    def __init__(self, metric: Any) -> None:
        self._empty = metric.clone()
        self.__name__ = type(metric).__name__
        self._takes_labels = getattr(metric, "requires_labels", False)
        self._takes_numbers = isinstance(metric, _metrics().base.RegressionMetric)

    def __call__(self, y: Any, output: Output) -> float:
        """Return the value on one record; ``TypeError`` if the output does not fit."""
        if self._takes_numbers and isinstance(output, dict):
            raise TypeError(
                f"{self.__name__} needs a number, but the model gave class probabilities"
            )
        asked: Output | Label | None = output
        if self._takes_labels and isinstance(output, dict):
            asked = max(output, key=output.__getitem__) if output else None
        metric = deepcopy(self._empty)
        metric.update(y, asked)
        return float(metric.get())


def is_river(loss: object) -> bool:
    """Return whether something is a metric of River or of a subclass, its class, or a window."""
    if _metrics() is None:  # then nobody has made one
        return False
    given = loss if isinstance(loss, type) else type(loss)
    base = _metrics().base
    return issubclass(given, base.Metric | base.ClusteringMetric | _windows())


def loss_of(loss: Any) -> str | Callable[[Any, Output], float]:
    """Return the name of the loss that a metric is the mean of, or else the metric's own loss.

    Raises
    ------
    ValueError
        If the metric is no mean over records, with the reason.

    Examples
    --------
    >>> from river import metrics
    >>> loss_of(metrics.MAE()), loss_of(metrics.LogLoss)
    ('absolute_error', 'cross_entropy')
    >>> loss_of(metrics.F1)
    Traceback (most recent call last):
        ...
    ValueError: F1 is no mean of losses of single records: use cross_entropy, brier or zero_one
    """
    metrics = _metrics()
    metric = _made(loss) if isinstance(loss, type) else loss
    name = type(metric).__name__
    same = {
        metrics.Accuracy: "zero_one",
        metrics.CrossEntropy: "cross_entropy",
        metrics.LogLoss: "cross_entropy",
        metrics.MAE: "absolute_error",
        metrics.MSE: "squared_error",
    }
    if type(metric) in same:
        return same[type(metric)]
    if isinstance(metric, _windows()):
        raise ValueError(f"{name} takes a window, but here alpha smooths: give the metric alone")
    is_mean = isinstance(metric, metrics.base.MeanMetric) and not isinstance(metric, metrics.RMSE)
    if not is_mean:
        is_number = isinstance(metric, metrics.base.RegressionMetric)
        instead = "squared_error or absolute_error" if is_number else OF_CLASSES
        raise ValueError(f"{name} is no mean of losses of single records: use {instead}")
    if metric.bigger_is_better:
        raise ValueError(f"{name} grows as predictions get better: use a loss, which falls")
    return RiverLoss(metric)


def _made(kind: type) -> Any:
    try:
        return kind()
    except TypeError as error:
        raise ValueError(f"{kind.__name__} needs parameters, so give an object: {error}") from None


def _metrics() -> Any:
    return sys.modules.get("river.metrics")


def _windows() -> Any:
    rolling = sys.modules["river.utils"]
    return rolling.Rolling | rolling.TimeRolling
