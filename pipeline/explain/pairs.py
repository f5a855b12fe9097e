"""iPDP of pairs: the model's output as a function of two features.

Muschalik, Fumagalli, Jagtani, Hammer, Hüllermeier (2023), "iPDP: On Partial Dependence Plots in
Dynamic Modeling Scenarios", with a set of interest S of two features.
"""

from collections.abc import Collection, Sequence

from fluxplain.evaluate import Evaluator
from fluxplain.explain.grids import GridKind, GridSettings, StorageKind, check_pairs
from fluxplain.explain.pdp import PDP, EffectExplainer
from fluxplain.explain.point_storage import seeded
from fluxplain.explain.surface import Axes, SurfaceEffect


class IncrementalPairPDP(EffectExplainer):
    """Incremental partial dependence of a model's output on pairs of features.

    A surface shows the predicted value (regression), the probability of the positive class (binary:
    the larger of the two labels), or one surface per class (more than two). The model is evaluated
    at ``grid_size²`` points for each pair of numeric features.

    Parameters
    ----------
    pairs
        The pairs, two different features each. All results are keyed by ``"first|second"``.
    model, alpha, grid, grid_size, categorical, storage, storage_size, window, debias, seed
        See :class:`~fluxplain.explain.pdp.EffectExplainer`, also for all other parameters.

    References
    ----------
    The importance is the standard deviation of the surface, after Greenwell, Boehmke, McCarthy
    (2018), "A Simple and Effective Model-Based Variable Importance Measure".

    Examples
    --------
    >>> class Product:
    ...     def predict_one(self, x):
    ...         return x["a"] * x["b"]
    >>> pdp = IncrementalPairPDP(
    ...     Product(), [("a", "b")], grid="range", grid_size=2, storage_size=6, seed=1
    ... )
    >>> for t in range(10):
    ...     values = pdp.explain_one({"a": float(t % 2), "b": float(t % 3)})
    >>> pdp.surfaces["a|b"]
    (([0.0, 1.0], [0.0, 2.0]), [[0.0, 0.0], [0.0, 2.0]])
    >>> values
    {'a|b': 1.0}
    """

    def __init__(
        self,
        model: object,
        pairs: Sequence[tuple[str, str]],
        *,
        alpha: float = 0.001,
        grid: GridKind = "quantile-range",
        grid_size: int = 10,
        categorical: Collection[str] | None = None,
        storage: StorageKind = "frequency",
        storage_size: int = 100,
        window: int | None = None,
        entrance_probability: float = 1.0,
        warm_up: int | None = None,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        self.pairs = check_pairs(pairs)
        settings = GridSettings(
            kind=grid,
            size=grid_size,
            storage=storage,
            storage_size=storage_size,
            window=window,
            entrance_probability=entrance_probability,
            warm_up=warm_up,
        )
        method = PDP((), self.pairs, settings, categorical=categorical, rng_of=seeded(seed))
        super().__init__(model, method, alpha=alpha, debias=debias, evaluator=evaluator)

    @property
    def surfaces(self) -> dict[str, tuple[Axes, SurfaceEffect]]:
        """Pair → (grids of both features, effect); all empty before the first explanation.

        The effect has a row for each point of the first feature.
        """
        known = {name: self._known().smoothed(name) for name in self.pairs}
        return {name: ((each.axes[0], each.axes[1]), each.effect) for name, each in known.items()}
