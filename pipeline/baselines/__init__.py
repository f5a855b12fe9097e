"""Baselines of the papers: PFI, SAGE and PDP of a whole batch.

:class:`IntervalPFI` and :class:`SlidingWindowSAGE` recompute them from time to time, alongside a
model that learns.

Parameters
----------
model, features, loss, seed, evaluator
    See :class:`~fluxplain.explain.importance.ImportanceExplainer`, also for errors.
xs
    The observations, N of at least 2; every explained feature must be there.
ys
    Their labels.

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
