"""iPDP: the effect of a feature on the model's output, as a curve that follows the model.

Muschalik, Fumagalli, Jagtani, Hammer, Hüllermeier (2023), "iPDP: On Partial Dependence Plots in
Dynamic Modeling Scenarios".
"""

import random
from collections.abc import Collection, Sequence
from typing import Any

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    Value,
    evaluator_for,
)
from pipeline.explain.curve import Effect, Grid, PDPCurve
from pipeline.explain.importance import check_features, check_observation
from pipeline.explain.pfi import check_warm_up
from pipeline.explain.smoothing import confidence_bound
from pipeline.explain.storage import CategoryStorage, FrequencyStorage
from pipeline.explain.together import explain_together


class PDPGrid:
    """Chooses the evaluation points of one feature from its recent values.

    Equidistant between the 5 % and the 95 % quantile of a numeric feature; for a categorical one
    the categories now in the storage.

    References
    ----------
    iPDP, Section 3.2 (evaluation points) and Algorithm 3 (storage).
    """

    def __init__(
        self,
        *,
        categorical: bool,
        grid_size: int,
        storage_size: int,
        entrance_probability: float,
        warm_up: int,
        rng: random.Random,
    ) -> None:
        if grid_size < 2:
            raise ValueError(f"grid_size is {grid_size!r}, but must be at least 2")
        storage = CategoryStorage if categorical else FrequencyStorage
        self.grid_size = grid_size
        self.warm_up = warm_up
        self._storage = storage(storage_size, rng, entrance_probability)

    def points(self) -> Grid:
        """Return the evaluation points; none while warming up."""
        if len(self._storage) < self.warm_up:
            return []
        if isinstance(self._storage, CategoryStorage):
            return self._storage.categories()
        low, high = self._storage.quantile(0.05), self._storage.quantile(0.95)
        step = (high - low) / (self.grid_size - 1)
        return [low + k * step for k in range(self.grid_size)]

    def update(self, value: Value) -> None:
        """Offer the observation's value to the storage, after it was explained."""
        self._storage.update(value)


class IncrementalPDP:
    """Incremental partial dependence curves of a model that learns.

    The curve shows the predicted value (regression), the probability of the positive class
    (binary: the larger of the two labels), or one curve a class (more than two).

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    features
        Names of the features to explain.
    alpha
        Smoothing of effects and grid, in (0, 1].
    grid_size
        Points of a numeric feature's grid, at least 2.
    categorical
        Which of the features are categorical. By default those whose first value is text or a
        truth value.
    storage_size
        How many recent values the 5 % and 95 % quantiles are taken from.
    entrance_probability
        Chance of a value to enter the storage, in (0, 1]: the quantiles are those of about the
        last ``storage_size / entrance_probability`` values.
    warm_up
        Values to store before the first explanation, at least 1 and at most ``storage_size``,
        which is the default.
    debias
        Divide by the sum of the smoothing's weights.
    seed
        Seed of its random numbers; None for another one each time.
    evaluator
        How the model is asked: ``"hoeffding"``, ``"linear"``, ``"batch"``, ``"generic"``, or
        ``"auto"``, the first of these that fits; or an evaluator of your own.

    Raises
    ------
    ValueError
        For an argument out of its range; the message names it.
    TypeError
        If the model cannot be asked.

    References
    ----------
    iPDP, Section 3.2, Algorithm 1; Algorithm 3 for the storage.

    Examples
    --------
    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"] + x["b"]
    >>> pdp = IncrementalPDP(Double(), ["a"], grid_size=3, storage_size=5, seed=1)
    >>> for a in range(10):
    ...     values = pdp.explain_one({"a": float(a % 5), "b": 1.0})
    >>> grid, effect = pdp.curves["a"]
    >>> [round(v, 3) for v in grid], [round(v, 3) for v in effect]
    ([0.2, 2.0, 3.8], [1.4, 5.0, 8.6])
    """

    def __init__(
        self,
        model: object,
        features: Sequence[str],
        *,
        alpha: float = 0.001,
        grid_size: int = 10,
        categorical: Collection[str] | None = None,
        storage_size: int = 100,
        entrance_probability: float = 1.0,
        warm_up: int | None = None,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        self.features = check_features(features)
        self.alpha = alpha
        self._categorical = None if categorical is None else frozenset(categorical)
        self._debias = debias
        self.evaluator = (
            evaluator_for(model, evaluator) if isinstance(evaluator, str) else evaluator
        )
        self._grid_options: dict[str, Any] = {
            "grid_size": grid_size,
            "storage_size": storage_size,
            "entrance_probability": entrance_probability,
            "warm_up": check_warm_up(warm_up, storage_size),
        }
        self._rng = random.Random(seed)
        self._grids: dict[str, PDPGrid] = {}
        self._curves: dict[str, PDPCurve] = {}
        self._increments: dict[str, float] = {}
        self._new(categorical=False)  # a wrong argument shows here, not at the first observation
        if self._categorical is not None:
            self._start(dict.fromkeys(self.features, 0.0))

    def explain_one(self, x: Observation) -> dict[str, float]:
        """Take one observation, before the model learns it, and return the importances.

        Parameters
        ----------
        x
            Feature → value; every explained feature must be there.
        """
        [values] = explain_together([self], x)
        return values

    def ask(self, x: Observation) -> tuple[dict[str, Grid], list[dict[str, Value]]]:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        check_observation(x, self.features)
        if not self._grids:
            self._start(x)
        points = {feature: grid.points() for feature, grid in self._grids.items()}
        return points, [{f: point} for f, grid in points.items() for point in grid]

    def take(
        self,
        x: Observation,  # noqa: ARG002
        y: object,  # noqa: ARG002
        asked: dict[str, Grid],
        outputs: Sequence[Output],
    ) -> None:
        """Take the answers."""
        begin = 0
        for feature, grid in asked.items():
            if grid:
                ice = outputs[begin : begin + len(grid)]
                self._increments[feature] = self._curves[feature].update(grid, ice)
                begin += len(grid)

    def store(self, x: Observation) -> None:
        """Keep the observation's values."""
        for feature, grid in self._grids.items():
            grid.update(x[feature])

    @property
    def curves(self) -> dict[str, tuple[Grid, Effect]]:
        """Feature → (grid, effect); both empty before the first explanation."""
        return {f: (curve.grid, curve.effect) for f, curve in self._items()}

    @property
    def values(self) -> dict[str, float]:
        """Feature → importance of its curve; 0 before the first explanation."""
        return {feature: curve.value for feature, curve in self._items()}

    @property
    def variances(self) -> dict[str, float]:
        """Feature → variance of one observation's contribution to the importance."""
        return {feature: curve.variance for feature, curve in self._items()}

    @property
    def std_errors(self) -> dict[str, float]:
        """Feature → standard error of the importance; infinite before the first explanation."""
        return {feature: curve.std_error for feature, curve in self._items()}

    @property
    def increments(self) -> dict[str, float]:
        """Feature → importance of the last ICE curve; empty before the first."""
        return dict(self._increments)

    def confidence(self, delta: float) -> dict[str, float]:
        """Return feature → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {f: confidence_bound(e, delta) for f, e in self.std_errors.items()}

    def _items(self) -> list[tuple[str, PDPCurve]]:
        empty = PDPCurve(self.alpha, categorical=False)
        return [(feature, self._curves.get(feature, empty)) for feature in self.features]

    def _start(self, x: Observation) -> None:
        for feature in self.features:
            categorical = (
                isinstance(x[feature], bool | str)
                if self._categorical is None
                else feature in self._categorical
            )
            self._grids[feature], self._curves[feature] = self._new(categorical=categorical)

    def _new(self, *, categorical: bool) -> tuple[PDPGrid, PDPCurve]:
        return (
            PDPGrid(categorical=categorical, rng=self._rng, **self._grid_options),
            PDPCurve(self.alpha, categorical=categorical, debias=self._debias),
        )
