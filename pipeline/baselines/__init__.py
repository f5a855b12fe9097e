"""Baselines of the papers: PFI, SAGE and PDP of a whole batch.

:class:`IntervalPFI` and :class:`SlidingWindowSAGE` recompute them from time to time, alongside a
model that learns.

Parameters
----------
model
    Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is evaluated,
    never changed.
xs
    The observations, N of at least 2; every explained feature must be there.
ys
    Their labels.
features
    Names of the features to explain. A mapping among them, such as ``{"place": ["lat", "lon"]}``,
    defines groups of features that are explained as one.
loss
    ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``, ``"squared_error"``, or
    a function of (label, output).
seed
    Random seed; None for a new one each time.
evaluator
    How the model is evaluated: ``"hoeffding"``, ``"linear"``, ``"batch"``, ``"generic"``, or
    ``"auto"``, the first of these that fits; or an evaluator of your own.

Raises
------
ValueError
    For an argument out of its range; the message names it.
TypeError
    If the model cannot be evaluated.

Examples
--------
>>> from river import linear_model
>>> model = linear_model.LinearRegression()
>>> xs = [{"a": t % 7, "b": t % 3} for t in range(200)]
>>> ys = [2.0 * x["a"] for x in xs]
>>> for x, y in zip(xs, ys):
...     model.learn_one(x, y)
>>> pfi = batch_pfi(model, xs, ys, ["a", "b"], loss="squared_error", seed=1)
>>> pfi["a"] > 100 * abs(pfi["b"])
True
"""

from fluxplain.baselines.batch_pdp import (
    PairDependence,
    PartialDependence,
    batch_pair_pdp,
    batch_pdp,
)
from fluxplain.baselines.batch_pfi import batch_pfi, expected_pfi
from fluxplain.baselines.batch_sage import batch_sage
from fluxplain.baselines.impurity import mean_decrease_in_impurity
from fluxplain.baselines.window import IntervalPFI, SlidingWindowSAGE

__all__ = [
    "IntervalPFI",
    "PairDependence",
    "PartialDependence",
    "SlidingWindowSAGE",
    "batch_pair_pdp",
    "batch_pdp",
    "batch_pfi",
    "batch_sage",
    "expected_pfi",
    "mean_decrease_in_impurity",
]
