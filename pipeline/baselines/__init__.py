"""What the papers compare iPFI, iSAGE and iPDP with: the same explanations of a whole batch.

Those of a window are recomputed from time to time, beside a model that learns.

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

from pipeline.baselines.impurity import mean_decrease_in_impurity
from pipeline.baselines.pdp import PairDependence, PartialDependence, batch_pair_pdp, batch_pdp
from pipeline.baselines.pfi import batch_pfi, expected_pfi
from pipeline.baselines.sage import batch_sage
from pipeline.baselines.window import IntervalPFI, SlidingWindowSAGE

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
