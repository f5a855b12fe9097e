"""The papers' explanations, as a library: iPFI, iSAGE and iPDP; and reasons.

Usable without Kafka: test, explain, then train.

Examples
--------
>>> from river import linear_model
>>> from fluxplain.explain import IncrementalPFI
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

from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.explain.explainers import explain_together
    from fluxplain.explain.losses import LOSSES, get_loss
    from fluxplain.explain.normalization import normalized
    from fluxplain.explain.output_reasons import IncrementalReasons
    from fluxplain.explain.pairs import IncrementalPairPDP
    from fluxplain.explain.pdp import IncrementalPDP
    from fluxplain.explain.pfi import IncrementalPFI
    from fluxplain.explain.sage import IncrementalSAGE
else:
    __getattr__, __dir__ = lazy(
        __name__,
        explainers=["explain_together"],
        losses=["LOSSES", "get_loss"],
        normalization=["normalized"],
        output_reasons=["IncrementalReasons"],
        pairs=["IncrementalPairPDP"],
        pdp=["IncrementalPDP"],
        pfi=["IncrementalPFI"],
        sage=["IncrementalSAGE"],
    )

__all__ = [
    "LOSSES",
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalPairPDP",
    "IncrementalReasons",
    "IncrementalSAGE",
    "explain_together",
    "get_loss",
    "normalized",
]
