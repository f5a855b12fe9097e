"""The papers' explanations, as a library: iPFI, iSAGE and iPDP.

Usable without Kafka: test, explain, then train.

Examples
--------
>>> from river import linear_model
>>> from pipeline.explain import IncrementalPFI
>>> model = linear_model.LinearRegression()
>>> pfi = IncrementalPFI(model, ["a", "b"], loss="squared_error", reservoir_size=10, seed=1)
>>> for t in range(200):
...     x, y = {"a": t % 7, "b": t % 3}, 2.0 * (t % 7)
...     values = pfi.explain_one(x, y)
...     model.learn_one(x, y)
>>> pfi.values["a"] > 10 * abs(pfi.values["b"])
True
"""

from typing import TYPE_CHECKING

from pipeline.lazy import lazy

if TYPE_CHECKING:
    from pipeline.explain.losses import LOSSES, get_loss
    from pipeline.explain.normalization import normalized
    from pipeline.explain.pairs import IncrementalPairPDP
    from pipeline.explain.pdp import IncrementalPDP
    from pipeline.explain.pfi import IncrementalPFI
    from pipeline.explain.sage import IncrementalSAGE
    from pipeline.explain.together import explain_together
else:
    __getattr__, __dir__ = lazy(
        __name__,
        losses=["LOSSES", "get_loss"],
        normalization=["normalized"],
        pairs=["IncrementalPairPDP"],
        pdp=["IncrementalPDP"],
        pfi=["IncrementalPFI"],
        sage=["IncrementalSAGE"],
        together=["explain_together"],
    )

__all__ = [
    "LOSSES",
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalPairPDP",
    "IncrementalSAGE",
    "explain_together",
    "get_loss",
    "normalized",
]
