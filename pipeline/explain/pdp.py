"""iPDP: the effect of a feature on the model's output, as a curve that adapts with the model.

Muschalik, Fumagalli, Jagtani, Hammer, Hüllermeier (2023), "iPDP: On Partial Dependence Plots in
Dynamic Modeling Scenarios".
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self, cast

import numpy as np

from fluxplain.evaluate import Encoding, Evaluator, Observation, Observed, Table
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.explain import kernels
from fluxplain.explain.curve import Effect, Grid, IceCurve, IceCurves
from fluxplain.explain.effects import Contribution, Effects
from fluxplain.explain.explainers import Explainer, explain_together
from fluxplain.explain.grids import GridKind, GridSettings, StorageKind, check_ice
from fluxplain.explain.method import Answers, Axis, Given, Method, Question, as_grid
from fluxplain.explain.parameter_checks import check_share
from fluxplain.explain.players import check_features
from fluxplain.explain.point_storage import Points, PointStorage, RNGOf, seeded
from fluxplain.explain.smoothing import Estimated
from fluxplain.explain.trends import Trends

_PUT_POINTS = Direct(kernels.put_points)


class Asked(NamedTuple):
    """Features and pairs, how many inputs each has, and its evaluation points."""

    names: Sequence[str]
    sizes: Places
    axes: Sequence[Axis | tuple[Axis, Axis]] | Floats


class PDP(Method):
    """Asks about an input for each evaluation point of each feature, and of each pair of features.

    ``features`` have a curve; ``pairs`` map a name to two features, which have a surface. See
    :class:`~fluxplain.explain.point_storage.PointStorage` for the other parameters.

    References
    ----------
    iPDP, Algorithm 1, lines 2 to 4, for sets S of one feature or two.
    """

    def __init__(
        self,
        features: Sequence[str],
        pairs: Mapping[str, tuple[str, str]],
        settings: GridSettings,
        *,
        categorical: Collection[str] | None = None,
        rng_of: RNGOf,
    ) -> None:
        self.features = tuple(features)
        self.pairs = dict(pairs)
        members = dict.fromkeys([*features, *[f for pair in pairs.values() for f in pair]])
        self.storage = PointStorage([*members], settings, categorical=categorical, rng_of=rng_of)

    @classmethod
    def configured(
        cls, given: Given, *, grid: GridKind, grid_size: int, ice: int, pairs: Any, **settings: Any
    ) -> Self:
        """Return the method with the settings of its table; others keep ICE curves and pairs."""
        del ice, pairs
        return cls(
            [name for name in given.asked if name not in given.pairs],
            {name: pair for name, pair in given.pairs.items() if name in given.asked},
            GridSettings(kind=grid, size=grid_size, **settings),
            categorical=given.categorical,
            rng_of=given.rng_of,
        )

    @property
    def reach(self) -> int:
        """Twice the observations that determine the evaluation points."""
        return self.storage.settings.reach

    def prepare(self, encoding: Encoding) -> None:
        """Teach the encoding the stored categories."""
        self.storage.prepare(encoding)

    def ask(self, observed: Observed) -> Question | None:
        """Return one input per point; None while all features warm up."""
        self.storage.learn_kinds(observed.x)
        points = self.storage.points(observed.encoding)
        singles = points.some(self.features) if self.pairs else points
        pairs = {name: points.some(pair) for name, pair in self.pairs.items()}
        pairs = {name: found for name, found in pairs.items() if len(found.names) > 1}
        asked = _asked(singles, pairs)
        if not asked.names:
            return None
        columns = columns_of(observed.features, singles.names)

        def put(rows: Floats) -> None:
            _PUT_POINTS.call(rows, columns, singles.sizes, singles.codes)
            n = len(singles.codes)
            for pair in pairs.values():
                first, second = np.split(pair.codes, pair.sizes[:1])
                both = first.repeat(len(second)), np.tile(second, len(first))
                own = rows[n : n + len(both[0])]
                own[:, columns_of(observed.features, pair.names)] = np.stack(both, axis=1)
                n += len(own)

        combined = sum(int(pair.sizes.prod()) for pair in pairs.values())
        return Question(len(singles.codes) + combined, put, asked)

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:  # noqa: ARG002
        """Return the outputs at the points of each feature and pair."""
        labels, numbers, _ = table
        asked: Asked = question.about
        names, sizes, axes = asked
        if isinstance(axes, np.ndarray) or len(set(sizes.tolist())) == 1:
            shape = len(names), len(numbers) // len(names), len(labels)
            return Answers(names, labels, numbers.reshape(shape), axes)
        ends = accumulate(sizes.tolist())
        blocks = [numbers[end - size : end] for size, end in zip(sizes.tolist(), ends, strict=True)]
        return Answers(names, labels, blocks, axes)

    def store(self, observed: Observed) -> None:
        """Offer the observation's values to the storages."""
        self.storage.store(observed)

    def take_over(self, before: Sequence["PDP"]) -> None:
        """Take over each feature's storage from a method that has it."""
        for feature in self.storage.features:
            other = next((each for each in before if feature in each.storage.features), None)
            if other is not None:
                self.storage.take_over(feature, other.storage)


def _asked(singles: Points, pairs: Mapping[str, Points]) -> Asked:
    """Append the pairs, each with every combination of both features' points."""
    if not pairs:
        return Asked(singles.names, singles.sizes, singles.axes)
    return Asked(
        [*singles.names, *pairs],
        np.concatenate([singles.sizes, [pair.sizes.prod() for pair in pairs.values()]]),
        [*singles.axes, *((pair.axes[0], pair.axes[1]) for pair in pairs.values())],
    )


class EffectExplainer(Explainer):
    """Base of iPDP of features and of pairs.

    Parameters
    ----------
    model, categorical, debias, seed, evaluator
        See :class:`~fluxplain.explain.explainers.Explainer`, also for errors.
    alpha
        Smoothing rate of effects and grid, in (0, 1].
    grid
        Evaluation points of numeric features: ``"quantile-range"``, equidistant from the 5 % to the
        95 % quantile of recent values, wider where they resemble the ones before; ``"range"``,
        equidistant from the smallest to the largest of the last values; ``"quantiles"``, the
        quantiles themselves at equidistant levels from 5 % to 95 %, which may coincide. A
        categorical feature has the categories that are in its storage.
    grid_size
        Evaluation points of a numeric feature for each observation, at least 2. Equidistant ones,
        up to 100, are rounded to points that stay where they are; a curve has those of recent
        observations, at most four times as many. Others are smoothed as the effects are.
    storage
        Eviction policy of the value store: the oldest value (``"frequency"``), or a random one
        weighted by age (``"age-weighted"``). The grid ``"range"`` has no store.
    storage_size
        Number of recent values that determine the quantiles and the categories.
    window
        Number of last values whose extremes the grid ``"range"`` spans, for that grid only;
        ``storage_size`` by default.
    entrance_probability
        Probability that a value enters the storage, in (0, 1]: the quantiles are those of about the
        last ``storage_size / entrance_probability`` values.
    warm_up
        Values to store before the first explanation, at least 1 and at most ``storage_size`` and
        ``window``, which is the default.

    References
    ----------
    iPDP, Section 3.2 (evaluation points), Algorithm 1; Algorithm 2 for the range, Algorithm 3 for
    the storage.
    """

    _method: PDP

    def __init__(
        self,
        model: object,
        method: PDP,
        *,
        alpha: float,
        debias: bool,
        evaluator: Evaluator | str,
    ) -> None:
        self.alpha = check_share("alpha", alpha)
        super().__init__(model, method, method.storage.features, evaluator)
        self._debias = debias
        self._effects: Effects | None = None
        self._contributions: dict[str, Contribution] = {}

    def explain_one(self, x: Observation) -> dict[str, float]:
        """Explain one observation, before the model learns it, and return the importances.

        Parameters
        ----------
        x
            Feature → value, as a dictionary or a row with names, such as a pandas row; every
            explained feature must be there.

        Raises
        ------
        ValueError, TypeError
            If the model or the explainer cannot use a value; the message names it.
        """
        [values] = explain_together([self], x)
        return values

    def _take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:  # noqa: ARG002
        """Smooth the ICE curves."""
        if question is not None:
            answers = self._method.answer(question, prediction, table)
            self._contributions |= self._known().take(answers)
            self._taken(answers)

    def _numbers(self, of: Estimated) -> dict[str, float]:
        """Return the values, variances or standard errors by name."""
        return self._known()._numbers(of)

    @property
    def increments(self) -> dict[str, float]:
        """Name → importance of the last ICE curve or surface; empty before the first."""
        names = (*self._method.features, *self._method.pairs)
        found = self._contributions
        return {name: found[name][0] for name in names if name in found}

    def _explained(self) -> int:
        known = self._known()
        return max(known.smoothed(name).n for name in (*self._method.features, *self._method.pairs))

    def _settings(self) -> dict[str, str]:
        return {"alpha": str(self.alpha)}

    def _taken(self, answers: Answers) -> None:
        """Do more with the outputs; a hook for subclasses."""

    def _known(self) -> Effects:
        """Return the effects; as if all features were numeric until their kinds are known."""
        if self._effects is not None:
            return self._effects
        method, storage = self._method, self._method.storage
        kinds = {feature: storage.kinds.get(feature, False) for feature in storage.features}
        of_features: dict[str, tuple[bool, ...]] = {
            feature: (kinds[feature],) for feature in method.features
        }
        of_pairs = {name: (kinds[a], kinds[b]) for name, (a, b) in method.pairs.items()}
        effects = Effects(
            {**of_features, **of_pairs},
            self.alpha,
            debias=self._debias,
            reach=method.reach,
            anchored=storage.settings.is_anchored,
            trends=Trends(of_features),
        )
        if storage.kinds:
            self._effects = effects
        return effects


class IncrementalPDP(EffectExplainer):
    """Incremental partial dependence curves of a model that learns.

    The curve shows the predicted value (regression), the probability of the positive class
    (binary: the larger of the two labels), or one curve per class (more than two).

    Parameters
    ----------
    features
        Names of the features to explain.
    ice
        Number of ICE curves of the last observations that are kept, 0 to 1,000; see :attr:`ice`.
    model, grid_size, alpha, grid, storage, storage_size, window, entrance_probability, seed
        See :class:`~fluxplain.explain.pdp.EffectExplainer`, also for all other parameters.

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
    ([0.0, 2.0, 4.0], [1.0, 5.0, 9.0])
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
        settings = GridSettings(
            kind=grid,
            size=grid_size,
            storage=storage,
            storage_size=storage_size,
            window=window,
            entrance_probability=entrance_probability,
            warm_up=warm_up,
        )
        method = PDP(self.features, {}, settings, categorical=categorical, rng_of=seeded(seed))
        super().__init__(model, method, alpha=alpha, debias=debias, evaluator=evaluator)
        kept = self.features if check_ice(ice) else ()
        self._ice = {feature: IceCurves(ice) for feature in kept}
        self._seen = 0

    def _take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:
        """Smooth the ICE curves, and count the observation."""
        super()._take(y, question, prediction, table)
        self._seen += 1

    def _taken(self, answers: Answers) -> None:
        if self._ice:
            axes = () if answers.points is None else answers.points
            for feature, block, axis in zip(answers.names, answers.blocks, axes, strict=True):
                grid = as_grid(cast(Axis, axis))
                self._ice[feature].update(self._seen, grid, Table(answers.labels, block))

    @property
    def trends(self) -> dict[str, float]:
        """Feature → trend of the last ICE curve; empty before the first.

        Its sign is that of the ICE curve's product with the mean of earlier ones: it changes if the
        effect reverses. It is positive if the output rises with the feature, negative if it falls;
        see :mod:`~fluxplain.explain.trends`.
        """
        found = self._contributions
        return {name: found[name][1] for name in self.features if name in found}

    @property
    def curves(self) -> dict[str, tuple[Grid, Effect]]:
        """Feature → (grid, effect); both empty before the first explanation."""
        known = {feature: self._known().smoothed(feature) for feature in self.features}
        return {feature: (each.axes[0], each.effect) for feature, each in known.items()}

    @property
    def curve_errors(self) -> dict[str, Effect]:
        """Feature → standard errors of the effect's points, in the effect's form.

        Infinite while too little is known; see :attr:`std_errors`.
        """
        known = {feature: self._known().smoothed(feature) for feature in self.features}
        return {feature: each.effect_errors for feature, each in known.items()}

    @property
    def ice(self) -> dict[str, list[IceCurve]]:
        """Feature → ICE curves of the last explained observations, oldest first.

        ``seq`` counts observations from 0. Empty unless ``ice`` is set.
        """
        return {feature: kept.curves for feature, kept in self._ice.items()}
