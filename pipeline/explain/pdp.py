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
from pipeline.evaluate.table import Table
from pipeline.explain.categories import CategoryCurve
from pipeline.explain.curve import Effect, Grid, table_of
from pipeline.explain.importance import check_observation, check_warm_up
from pipeline.explain.kernels import Flags, Places
from pipeline.explain.players import check_features
from pipeline.explain.questions import Observed
from pipeline.explain.ranks import RankCurves
from pipeline.explain.sampling.pdp import PDPQuestion, check_grid_size
from pipeline.explain.smoothing import confidence_bound
from pipeline.explain.storage import (
    CategoryStorage,
    FrequencyStorages,
    check_probability,
)
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
        self.evaluator = as_evaluator(model, evaluator)
        self._grid_size = check_grid_size(grid_size)
        self._storage_size = storage_size
        self._entrance_probability = check_probability(entrance_probability)
        self._warm_up = check_warm_up(warm_up, storage_size)
        self._rng = random.Random(seed)
        self._curves = RankCurves(0, alpha, debias=debias)
        self._storages = FrequencyStorages(0, storage_size)
        self._all_enter: Flags = np.ones(0, np.bool_)
        self._numeric: tuple[str, ...] = ()
        self._which: Places = np.zeros(0, np.intp)  # the numeric features that are warm
        self._categories: dict[str, tuple[CategoryStorage, CategoryCurve]] = {}
        self._increments: dict[str, float] = {}  # of categorical features
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
        numeric, which = self._numeric, self._which
        points = self._storages.grids(self._grid_size)
        if len(which) < len(numeric):
            which = self._which = self._storages.holding(self._warm_up)
            numeric = tuple([numeric[place] for place in which.tolist()])
            points = points[which]
        categories = {
            feature: storage.categories()
            for feature, (storage, _) in self._categories.items()
            if len(storage) >= self._warm_up
        }
        return PDPQuestion(
            self.features, numeric=numeric, which=which, points=points, categories=categories
        )

    def take(
        self,
        y: object,  # noqa: ARG002
        question: PDPQuestion,
        answers: Sequence[Output] | Table,
    ) -> None:
        """Take the answers."""
        if isinstance(answers, Table):
            self._curves.move(question.which, question.points, answers)
            return
        begin = place = 0
        for feature, grid in question.grids().items():
            table = table_of(answers[begin : begin + len(grid)])
            begin += len(grid)
            if feature in question.categories:
                _, curve = self._categories[feature]
                self._increments[feature] = curve.update_table(grid, table)
            else:
                one = slice(place, place + 1)
                self._curves.move(question.which[one], question.points[one], table)
                place += 1

    def store(self, observed: Observed) -> None:
        """Keep the observation's values."""
        values = observed.some(self._numeric)
        if values is None:
            values = np.array([float(observed.x[feature]) for feature in self._numeric])
        if self._categories or self._entrance_probability < 1.0:
            self._storages.update(values, self._entrances(observed.x))
        else:
            self._storages.update(values, self._all_enter)

    def _entrances(self, x: Observation) -> Flags:
        """Draw which numeric values enter; categories draw for themselves, in their turn."""
        probability = self._entrance_probability
        enters = []
        for feature in self.features:
            if feature in self._categories:
                self._categories[feature][0].update(x[feature])
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
            feature: ranks[feature] if feature in ranks else of(self._categories[feature][1])
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
        size, probability = self._storage_size, self._entrance_probability
        self._numeric = tuple(feature for feature in kinds if not kinds[feature])
        self._all_enter = np.ones(len(self._numeric), np.bool_)
        self._storages = FrequencyStorages(len(self._numeric), size)
        self._curves = RankCurves(len(self._numeric), self.alpha, debias=self._debias)
        self._categories = {
            feature: (
                CategoryStorage(size, self._rng, probability),
                CategoryCurve(self.alpha, debias=self._debias),
            )
            for feature in kinds
            if kinds[feature]
        }
