"""iSAGE: each feature's share in the model's loss reduction, as a Shapley value.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams".
"""

import random
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from fluxplain.evaluate import Evaluator, Observed, Output, Table
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import kernels, loss_kernels
from fluxplain.explain.importance import ImportanceExplainer
from fluxplain.explain.imputers import InnerSamples, Replacement, draws, encoded, mixed
from fluxplain.explain.losses import AnyLoss, Loss, Target, compiled_loss, excesses_of, losses_on
from fluxplain.explain.method import Answers, Given, Question, copies, distances
from fluxplain.explain.parameter_checks import ALL
from fluxplain.explain.players import Features, Players
from fluxplain.explain.randoms import permuted
from fluxplain.explain.smoothing import Alpha, OutputMean, check_alphas
from fluxplain.explain.storage import GeometricReservoir

DEFAULT_INNER_SAMPLES = 5

_CHANGING, _HIDE = Direct(kernels.changing), Direct(kernels.replace_hidden)
_REVEALED, _FALLS = Direct(kernels.revealed), Direct(loss_kernels.loss_falls)


class IncrementalSAGE(ImportanceExplainer):
    """Incremental SAGE values of a model that learns.

    The increments of one observation sum to the loss of the mean prediction minus the loss of the
    model (efficiency).

    The loss of a mean of m outputs is larger than that of their expectation: the squared error by
    Var(output | revealed features) / m. From two inner samples on, an estimate of this is taken
    off: exact for the squared error and Brier, with interventional draws, and of second order for
    the cross-entropy, the absolute error and losses of one's own. The latter are called three times
    as often for it, with n > 2 classes 2n + 1 times, at most 41; a function that is linear, or has
    steps, leaves it out with the attribute ``is_curved = False``. A single sample and the 0/1 loss
    leave the bias in. "How to read the explanations" in the documentation has measurements.

    Parameters
    ----------
    model, features, loss, alpha, categorical, reservoir_size, warm_up, debias, seed, evaluator
        See :class:`~fluxplain.explain.importance.ImportanceExplainer`, also for errors. The
        reservoir favours recent observations, and the first ``alpha`` also smooths the mean
        prediction.
    imputer
        What hides features: ``"interventional"`` takes the values of all of them from one past
        observation, ``"product"`` those of each from a separate one, ``"observational"`` draws
        values that fit the revealed features.
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"``, for
        ``"interventional"`` only, takes each stored observation once: the exact expectation over
        the reservoir. 1 is biased with any loss, so that no standard error is known.

    References
    ----------
    iSAGE, Section 3.1, Algorithm 1 and Definition 3; Algorithm 2 for the reservoir,
    Section 3.2.2 and Algorithms 3 and 4 for observational draws.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``, so ``a`` gets all of the improvement:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> sage = IncrementalSAGE(
    ...     Double(), ["a", "b"], loss="absolute_error", reservoir_size=4, seed=1
    ... )
    >>> for a in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
    ...     values = sage.explain_one({"a": a, "b": 7.0}, 2.0 * a)
    >>> {feature: round(value, 2) for feature, value in values.items()}
    {'a': 4.5, 'b': 0.0}
    """

    _method: "SAGE"

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        loss: AnyLoss | None = None,
        alpha: Alpha = 0.001,
        reservoir_size: int = 100,
        warm_up: int | None = None,
        inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        rng = random.Random(seed)
        method = SAGE(
            Players(features),
            reservoir=GeometricReservoir(reservoir_size, rng),
            imputer=imputer,
            categorical=categorical,
            alpha=check_alphas(alpha)[0],
            warm_up=warm_up,
            inner_samples=inner_samples,
            rng=rng,
        )
        super().__init__(model, method, loss=loss, alpha=alpha, debias=debias, evaluator=evaluator)

    @property
    def mean_prediction(self) -> Output:
        """The output when no feature is known: the smoothed mean output."""
        return self._method.mean_prediction.value


class Draw(NamedTuple):
    """The random draw for one observation.

    ``places`` are the players that can change an input, in the order in which they are revealed;
    ``levels`` the numbers of revealed players in the inputs: some of 1, 2, …, but not all players,
    which would be the observation itself. There are ``m`` inputs per level, and the variance of
    their mean output is ``share`` of the outputs' sample variance; 0 if it is not known.
    """

    places: Places
    levels: Places
    m: int
    share: float = 0.0


class SAGE(Replacement):
    """Asks about inputs in which more and more players are revealed, and averages the outputs.

    Interventional draws of an observation supply the replaced features along the whole
    permutation: each restricted output has the distribution that Algorithm 1 gives it, and
    differences of neighbours have less variance than with new draws. Observational draws are made
    again each time, since they depend on the revealed features.

    A player whose features have the observation's values everywhere in the reservoir cannot change
    an input, so it is a null player: it takes no part in the permutation and its contribution is 0.

    ``alpha`` is the smoothing of the mean prediction.

    References
    ----------
    iSAGE, Algorithms 1 and 2; 3 and 4 if observational.
    """

    def __init__(self, players: Players, *, alpha: float, **settings: Any) -> None:
        super().__init__(players, **settings)
        self.mean_prediction = OutputMean(alpha)

    @classmethod
    def configured(cls, given: Given, **settings: Any) -> Self:
        """Return the method with the settings of its table."""
        return super().configured(given, alpha=given.alpha, **settings)

    @property
    def reach(self) -> int | None:
        """Twice the size of the reservoir; None for a single value, whose bias is not known."""
        return None if 1 in {self.inner_samples, self.reservoir.size} else super().reach

    def ask(self, observed: Observed) -> Question | None:
        """Return the inputs, level by level; None while warming up."""
        stored = self.stored(observed)
        if stored is None:
            return None
        order = permuted(len(self.players), self.rng)
        chosen = draws(len(stored), self.inner_samples, self.rng)
        places = changing(self.players, order, observed, stored)
        draw = Draw(places, self._levels(places), len(chosen), self._share(len(stored)))
        if self.conditional is not None:
            return Question.of(self._drawn(observed, draw), draw)
        if self.imputer == "product":
            stored, chosen = mixed(stored, draw.m, self.rng), np.arange(draw.m)
        return hidden(self.players, observed, stored, chosen, draw)

    def _share(self, stored: int) -> float:
        """Return the variance of a restricted output, as a share of its draws' sample variance.

        The draws vary around the mean of the stored observations, and that around the expectation:
        by more if they resemble each other in time, as much as their features do on average; for
        the imputer ``"product"`` by less, if features interact. That of the leaves' samples behind
        ``"observational"`` is not known.
        """
        m = stored if self.inner_samples == ALL else int(self.inner_samples)
        if m == 1:
            return 0.0
        if self.conditional is not None:
            return 1.0 / m
        of_mean = 1.0 + self.delay.correlation
        if self.inner_samples == ALL:
            return of_mean / stored
        return 1.0 / m + of_mean / max(stored - 1, 1)

    def _levels(self, places: Places) -> Places:
        """Return the numbers of revealed players that require an evaluation."""
        if len(self.names) == len(self.players):
            return _between(len(places))
        asked = np.flatnonzero(np.isin(places, self.asked)).tolist()
        wanted = {i + after for i in asked for after in (0, 1)} - {0, len(places)}
        return np.array(sorted(wanted), np.intp)

    def _drawn(self, observed: Observed, draw: Draw) -> Floats:
        """Hide players by conditional draws: all are made, whichever players are asked about."""
        rows = copies(observed, len(draw.levels) * draw.m)
        imputer, places, wanted = self.conditional, draw.places.tolist(), draw.levels.tolist()
        for level in range(1, len(places)):
            hidden = tuple(self.players.of(places[level:]))
            drawn = imputer.draws(observed.x, hidden, draw.m) if imputer else []
            if level in wanted:
                begin = wanted.index(level) * draw.m
                values = encoded(observed.encoding, hidden, drawn)
                rows[begin : begin + draw.m, columns_of(observed.features, hidden)] = values
        return rows

    def see(self, prediction: Table) -> None:
        """Take the output on the observation into the mean prediction."""
        self.mean_prediction.update(prediction)

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:
        """Return the restricted outputs before and after each player is revealed.

        With several draws, two more rows are the variances of these outputs.
        """
        draw: Draw = question.about
        labels = self.mean_prediction.labels
        numbers = aligned(table, labels)
        steps = max(len(draw.places) - 1, 0)
        if len(draw.levels) < steps:
            whole = np.zeros((steps, draw.m, len(labels)))
            whole[draw.levels - 1] = numbers.reshape(len(draw.levels), draw.m, len(labels))
            numbers = whole.reshape(steps * draw.m, len(labels))
        mean, own = self.mean_prediction.on(labels), aligned(prediction, labels)[0]
        pairs = _REVEALED.call(
            mean, own, numbers, draw.m, draw.share, draw.places, len(self.players)
        )
        if len(self.names) < len(self.players):
            pairs = pairs[self.asked]
        return Answers(self.names, labels, pairs)

    def forget_model(self) -> None:
        """Reset the mean prediction, which is the former model's."""
        self.mean_prediction = OutputMean(self.mean_prediction.alpha)

    @staticmethod
    def increments(
        loss: Loss,
        ys: Sequence[Target],
        labels: Labels,
        predictions: Floats,  # noqa: ARG004  the blocks hold it where it is needed
        blocks: Floats,
    ) -> Floats:
        """Return Δ_t: the fall of the loss when the player is revealed (Algorithm 1, line 16).

        Blocks of more than one draw have four rows; see :func:`~.loss_kernels.loss_falls`.
        """
        if blocks.shape[1] < 2:
            raise ValueError("it needs the outputs before and after the feature is revealed")
        compiled = compiled_loss(loss, ys, labels)
        if compiled is not None:
            return _FALLS.call(*compiled, blocks)
        losses = losses_on(loss, ys, labels, blocks[:, :2])
        if blocks.shape[1] == 4:
            losses -= excesses_of(loss, ys, labels, blocks, losses)
        return losses[:, 0] - losses[:, 1]

    @staticmethod
    def moves(
        labels: Labels,
        predictions: Floats,  # noqa: ARG004  the blocks hold it where it is needed
        blocks: Floats,
    ) -> Floats:
        """Return the distances of the restricted outputs before and after."""
        return distances(labels, blocks[:, 1] - blocks[:, 0])


@lru_cache(maxsize=1_000)
def _between(n: int) -> Places:
    """Return 1 to n - 1."""
    return np.arange(1, n)


def hidden(
    players: Players, observed: Observed, stored: Floats, chosen: Places, draw: Draw
) -> Question:
    """Return the question about inputs whose hidden players have stored values, level by level.

    ``stored`` has the shape (observations, features); the m ``chosen`` observations supply the
    values.
    """
    columns = columns_of(observed.features, players.features)
    places, levels, m, _ = draw

    def put(rows: Floats) -> None:
        _HIDE.call(rows, columns, stored, chosen, players.starts, places, levels)

    return Question(len(levels) * m, put, draw)


def changing(players: Players, order: Sequence[int], observed: Observed, stored: Floats) -> Places:
    """Return the players, in order, whose values differ somewhere in the stored observations.

    All of them if none does: the difference between output and mean must be attributed to some.
    ``stored`` has the shape (observations, features). See iSAGE, Algorithm 1, line 3, and
    Algorithm 5, line 4.
    """
    columns = columns_of(observed.features, players.features)
    places = np.fromiter(order, np.intp, len(order))
    return _CHANGING.call(stored, observed.numbers, columns, players.starts, places)
