"""iPDP of two features together: how the output moves with both.

Muschalik, Fumagalli, Jagtani, Hammer, Hüllermeier (2023), "iPDP: On Partial Dependence Plots in
Dynamic Modeling Scenarios", with a set of interest S of two features.
"""

import random
from collections.abc import Collection, Sequence

from pipeline.evaluate import Evaluator, Observation, Output, as_evaluator
from pipeline.evaluate.table import Table
from pipeline.explain.curve import table_of
from pipeline.explain.grids import GridKind, GridSettings, StorageKind, check_pairs
from pipeline.explain.importance import check_observation
from pipeline.explain.questions import Observed
from pipeline.explain.sampling.pdp import PairQuestion, PDPGrid
from pipeline.explain.smoothing import check_alpha, confidence_bound
from pipeline.explain.surface import Axes, Surface, SurfaceEffect
from pipeline.explain.together import explain_together


class IncrementalPairPDP:
    """Incremental partial dependence of a model's output on pairs of features.

    A surface shows the predicted value (regression), the probability of the positive class (binary:
    the larger of the two labels), or one surface a class (more than two). The model is asked at
    ``grid_size²`` points for each pair of numeric features.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    pairs
        The pairs, two different features each. All results are keyed by ``"first|second"``.
    alpha
        Smoothing of effects and grids, in (0, 1].
    grid, grid_size, categorical, storage, storage_size, window, entrance_probability, warm_up
        How the points of each feature are chosen; see :class:`IncrementalPDP`.
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
    iPDP, Section 3.2, Algorithm 1. The importance is the standard deviation of the surface, after
    Greenwell, Boehmke, McCarthy (2018), "A Simple and Effective Model-Based Variable Importance
    Measure".

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
        self.alpha = check_alpha(alpha)
        self.evaluator = as_evaluator(model, evaluator)
        self._debias = debias
        self._settings = GridSettings(
            kind=grid,
            size=grid_size,
            storage=storage,
            storage_size=storage_size,
            window=window,
            entrance_probability=entrance_probability,
            warm_up=warm_up,
        )
        self._features = tuple(dict.fromkeys(f for pair in self.pairs.values() for f in pair))
        self._categorical = None if categorical is None else frozenset(categorical)
        self._rng = random.Random(seed)
        self._grids: dict[str, PDPGrid] = {}
        self._surfaces: dict[str, Surface] = {}
        self._increments: dict[str, float] = {}

    def explain_one(self, x: Observation) -> dict[str, float]:
        """Take one observation, before the model learns it, and return the importances.

        Parameters
        ----------
        x
            Feature → value; every feature of a pair must be there.
        """
        [values] = explain_together([self], x)
        return values

    def ask(self, observed: Observed) -> PairQuestion:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        check_observation(observed, self._features)
        if not self._grids:
            self._start(observed.x)
        points = {feature: grid.points() for feature, grid in self._grids.items()}
        return PairQuestion(
            {
                name: (pair, (points[pair[0]], points[pair[1]]))
                for name, pair in self.pairs.items()
                if points[pair[0]] and points[pair[1]]
            }
        )

    def take(
        self,
        y: object,  # noqa: ARG002
        question: PairQuestion,
        answers: Sequence[Output] | Table,
    ) -> None:
        """Take the answers."""
        begin = 0
        for name, (_, axes) in question.asked.items():
            end = begin + len(axes[0]) * len(axes[1])
            table = (
                Table(answers.labels, answers.numbers[begin:end])
                if isinstance(answers, Table)
                else table_of(answers[begin:end])
            )
            self._increments[name] = self._surfaces[name].update_table(axes, table)
            begin = end

    def store(self, observed: Observed) -> None:
        """Keep the observation's values."""
        for feature, grid in self._grids.items():
            grid.update(observed.x[feature])

    @property
    def surfaces(self) -> dict[str, tuple[Axes, SurfaceEffect]]:
        """Pair → (grids of both features, effect); all empty before the first explanation.

        The effect has a row for each point of the first feature.
        """
        return {name: (each.axes, each.effect) for name, each in self._known().items()}

    @property
    def values(self) -> dict[str, float]:
        """Pair → importance of its surface; 0 before the first explanation."""
        return {name: each.value for name, each in self._known().items()}

    @property
    def variances(self) -> dict[str, float]:
        """Pair → variance of one observation's contribution to the importance."""
        return {name: each.variance for name, each in self._known().items()}

    @property
    def std_errors(self) -> dict[str, float]:
        """Pair → standard error of the importance; infinite before the first explanation."""
        return {name: each.std_error for name, each in self._known().items()}

    @property
    def increments(self) -> dict[str, float]:
        """Pair → importance of the surface of the last observation; empty before the first."""
        return {name: self._increments[name] for name in self.pairs if name in self._increments}

    def confidence(self, delta: float) -> dict[str, float]:
        """Return pair → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {name: confidence_bound(e, delta) for name, e in self.std_errors.items()}

    def _known(self) -> dict[str, Surface]:
        if self._surfaces:
            return self._surfaces
        return {name: Surface(self.alpha, categorical=(False, False)) for name in self.pairs}

    def _start(self, x: Observation) -> None:
        """Tell numeric features from categorical ones."""
        kinds = {
            feature: isinstance(x[feature], bool | str)
            if self._categorical is None
            else feature in self._categorical
            for feature in self._features
        }
        self._grids = {
            feature: PDPGrid(self._settings, categorical=kind, rng=self._rng)
            for feature, kind in kinds.items()
        }
        self._surfaces = {
            name: Surface(self.alpha, categorical=(kinds[a], kinds[b]), debias=self._debias)
            for name, (a, b) in self.pairs.items()
        }
