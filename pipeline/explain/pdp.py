"""iPDP: the effect of a feature on the model's output, as a curve that follows the model.

Muschalik, Fumagalli, Jagtani, Hammer, Hüllermeier (2023), "iPDP: On Partial Dependence Plots in
Dynamic Modeling Scenarios".
"""

import math
import random
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    as_evaluator,
)
from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain.categories import CategoryCurve
from pipeline.explain.curve import Effect, Grid, table_of
from pipeline.explain.grids import GridKind, GridSettings, StorageKind, check_ice
from pipeline.explain.ice import IceCurve, IceCurves
from pipeline.explain.importance import check_observation
from pipeline.explain.kernels import Flags, Places
from pipeline.explain.players import check_features
from pipeline.explain.questions import Observed
from pipeline.explain.ranks import RankCurves
from pipeline.explain.sampling.pdp import PDPGrid, PDPQuestion
from pipeline.explain.smoothing import confidence_bound
from pipeline.explain.storage import FrequencyStorages
from pipeline.explain.together import explain_together

T = TypeVar("T")


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
    grid
        Evaluation points of numeric features: ``"quantile-range"``, equidistant from the 5 % to the
        95 % quantile of recent values; ``"range"``, equidistant from the smallest to the largest of
        the last ones; ``"quantiles"``, the quantiles themselves, of equidistant levels from 5 % to
        95 %. A categorical feature has the categories that are in its storage.
    grid_size
        Points of a numeric feature's grid, at least 2.
    categorical
        Which of the features are categorical. By default those whose first value is text or a
        truth value.
    storage
        Which of the stored values goes for a new one: ``"frequency"``, the oldest;
        ``"age-weighted"``, any, with a chance in proportion to its age.
    storage_size
        How many recent values the quantiles and the categories are taken from.
    window
        Of how many last values ``"range"`` takes the extremes, ``storage_size`` by default; no
        other grid has one.
    entrance_probability
        Chance of a value to enter the storage, in (0, 1]: the quantiles are those of about the
        last ``storage_size / entrance_probability`` values.
    warm_up
        Values to store before the first explanation, at least 1 and at most ``storage_size`` and
        ``window``; by default as many.
    ice
        How many of the last observations' own curves are kept, 0 to 1,000; see :attr:`ice`.
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
    iPDP, Section 3.2, Algorithm 1; Algorithm 2 for the range, Algorithm 3 for the storage.

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
        grid: GridKind = "quantile-range",
        grid_size: int = 10,
        categorical: Collection[str] | None = None,
        storage: StorageKind = "frequency",
        storage_size: int = 100,
        window: int | None = None,
        entrance_probability: float = 1.0,
        warm_up: int | None = None,
        ice: int = 0,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        self.features = check_features(features)
        self.alpha = alpha
        self._categorical = None if categorical is None else frozenset(categorical)
        self._debias = debias
        self.evaluator = as_evaluator(model, evaluator)
        self._settings = GridSettings(
            kind=grid,
            size=grid_size,
            storage=storage,
            storage_size=storage_size,
            window=window,
            entrance_probability=entrance_probability,
            warm_up=warm_up,
        )
        self._rng = random.Random(seed)
        self._curves = RankCurves(0, alpha, debias=debias)
        self._storages = FrequencyStorages(0, storage_size)
        self._together: tuple[str, ...] = ()  # the numeric features that these storages are of
        self._all_enter: Flags = np.ones(0, np.bool_)
        self._grids: dict[str, PDPGrid] = {}  # of the other features
        self._numeric: tuple[str, ...] = ()
        self._which: Places = np.zeros(0, np.intp)  # the numeric features that are warm
        self._categories: dict[str, CategoryCurve] = {}
        self._increments: dict[str, float] = {}  # of categorical features
        self._seen = 0
        kept = self.features if check_ice(ice) else ()
        self._ice = {feature: IceCurves(ice) for feature in kept}
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

    def ask(self, observed: Observed) -> PDPQuestion:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        check_observation(observed, self.features)
        if not self._is_started:
            self._start(observed.x)
        numeric, points = self._points()
        grids = {feature: self._grids[feature].points() for feature in self._categories}
        return PDPQuestion(
            self.features,
            numeric=numeric,
            which=self._which,
            points=points,
            categories={feature: grid for feature, grid in grids.items() if grid},
        )

    def _points(self) -> tuple[tuple[str, ...], Floats]:
        """Return which numeric features are warm, and their evaluation points."""
        numeric = self._numeric
        if self._together:
            points = self._storages.grids(self._settings.size)
            if len(self._which) == len(numeric):
                return numeric, points
            self._which = self._storages.holding(self._settings.needed)
            points = points[self._which]
        else:
            grids = [self._grids[feature].points() for feature in numeric]
            self._which = np.flatnonzero(list(map(bool, grids)))
            points = np.array([grid for grid in grids if grid], np.float64)
            points = points.reshape(len(self._which), self._settings.size)
        return tuple([numeric[place] for place in self._which.tolist()]), points

    def take(
        self,
        y: object,  # noqa: ARG002
        question: PDPQuestion,
        answers: Sequence[Output] | Table,
    ) -> None:
        """Take the answers."""
        if isinstance(answers, Table):
            self._curves.move(question.which, question.points, answers)
            if self._ice:
                self._keep(question, answers)
            return
        begin = place = 0
        for feature, grid in question.grids().items():
            table = table_of(answers[begin : begin + len(grid)])
            begin += len(grid)
            if feature in question.categories:
                self._increments[feature] = self._categories[feature].update_table(grid, table)
            else:
                one = slice(place, place + 1)
                self._curves.move(question.which[one], question.points[one], table)
                place += 1
            if self._ice:
                self._ice[feature].update(self._seen, grid, table)

    def _keep(self, question: PDPQuestion, answers: Table) -> None:
        """Keep the curves of numeric features."""
        size = self._settings.size
        for place, (feature, grid) in enumerate(question.grids().items()):
            own = Table(answers.labels, answers.numbers[place * size : (place + 1) * size])
            self._ice[feature].update(self._seen, grid, own)

    def store(self, observed: Observed) -> None:
        """Keep the observation's values."""
        values = observed.some(self._together)
        if values is None:
            values = np.array([float(observed.x[feature]) for feature in self._together])
        if self._grids or self._settings.entrance_probability < 1.0:
            self._storages.update(values, self._entrances(observed.x))
        else:
            self._storages.update(values, self._all_enter)
        self._seen += 1

    def _entrances(self, x: Observation) -> Flags:
        """Draw which of the values kept together enter; the others draw for themselves."""
        probability = self._settings.entrance_probability
        enters = []
        for feature in self.features:
            if feature in self._grids:
                self._grids[feature].update(x[feature])
            else:
                enters.append(probability == 1.0 or self._rng.random() < probability)
        return np.array(enters, np.bool_)

    @property
    def curves(self) -> dict[str, tuple[Grid, Effect]]:
        """Feature → (grid, effect); both empty before the first explanation."""
        curves = self._curves
        ranks = {f: (curves.grid(i), curves.effect(i)) for i, f in enumerate(self._numeric)}
        return self._each(ranks, lambda curve: (curve.grid, curve.effect), ([], []))

    @property
    def ice(self) -> dict[str, list[IceCurve]]:
        """Feature → the curves of the last explained observations, the oldest first.

        ``seq`` counts observations, from 0 on. Empty unless they are kept.
        """
        return {feature: kept.curves for feature, kept in self._ice.items()}

    @property
    def values(self) -> dict[str, float]:
        """Feature → importance of its curve; 0 before the first explanation."""
        if len(self._numeric) == len(self.features):
            return dict(zip(self.features, self._curves.values.tolist(), strict=True))
        return self._numbers(self._curves.values.tolist(), lambda curve: curve.value, 0.0)

    @property
    def variances(self) -> dict[str, float]:
        """Feature → variance of one observation's contribution to the importance."""
        return self._numbers(self._curves.variances.tolist(), lambda curve: curve.variance, 0.0)

    @property
    def std_errors(self) -> dict[str, float]:
        """Feature → standard error of the importance; infinite before the first explanation."""
        return self._numbers(self._curves.std_errors, lambda curve: curve.std_error, math.inf)

    @property
    def increments(self) -> dict[str, float]:
        """Feature → importance of the last ICE curve; empty before the first."""
        curves = self._curves
        ranks = zip(self._numeric, curves.increments.tolist(), curves.n.tolist(), strict=True)
        known = {**self._increments, **{feature: v for feature, v, n in ranks if n}}
        return {feature: known[feature] for feature in self.features if feature in known}

    def confidence(self, delta: float) -> dict[str, float]:
        """Return feature → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {f: confidence_bound(e, delta) for f, e in self.std_errors.items()}

    def _numbers(
        self, ranks: list[float], of: Callable[[CategoryCurve], float], unknown: float
    ) -> dict[str, float]:
        return self._each(dict(zip(self._numeric, ranks, strict=True)), of, unknown)

    def _each(
        self, ranks: dict[str, T], of: Callable[[CategoryCurve], T], unknown: T
    ) -> dict[str, T]:
        """Return what numeric and categorical features have, in the order of all."""
        if len(ranks) == len(self.features):
            return ranks
        if not self._is_started:
            return dict.fromkeys(self.features, unknown)
        return {
            feature: ranks[feature] if feature in ranks else of(self._categories[feature])
            for feature in self.features
        }

    @property
    def _is_started(self) -> bool:
        return bool(self._numeric or self._categories)

    def _start(self, x: Observation) -> None:
        """Tell numeric features from categorical ones."""
        kinds = {
            feature: isinstance(x[feature], bool | str)
            if self._categorical is None
            else feature in self._categorical
            for feature in self.features
        }
        self._numeric = tuple(feature for feature in kinds if not kinds[feature])
        self._together = self._numeric if self._settings.is_plain else ()
        self._all_enter = np.ones(len(self._together), np.bool_)
        self._storages = FrequencyStorages(len(self._together), self._settings.storage_size)
        self._grids = {
            feature: PDPGrid(self._settings, categorical=kinds[feature], rng=self._rng)
            for feature in kinds
            if feature not in self._together
        }
        self._curves = RankCurves(len(self._numeric), self.alpha, debias=self._debias)
        self._categories = {
            feature: CategoryCurve(self.alpha, debias=self._debias)
            for feature in kinds
            if kinds[feature]
        }
