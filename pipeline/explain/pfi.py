"""iPFI: how much the loss grows when a feature's value is replaced by another one.

Fumagalli, Muschalik, Hüllermeier, Hammer (2022), "Incremental Permutation Feature Importance
(iPFI): Towards Online Explanations on Data Streams".
"""

import random
from collections.abc import Collection, Sequence

import numpy as np

from fluxplain.evaluate import Evaluator, Observed, Table
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.evaluate.table import Labels
from fluxplain.explain import kernels, loss_kernels
from fluxplain.explain.importance import ImportanceExplainer
from fluxplain.explain.imputers import InnerSamples, Replacement, draws, encoded, mixed
from fluxplain.explain.losses import AnyLoss, Loss, Target, compiled_loss, losses_on
from fluxplain.explain.method import Answers, Question, copies
from fluxplain.explain.players import Features, Players
from fluxplain.explain.smoothing import Alpha
from fluxplain.explain.storage import make_reservoir

_REPLACE, _GROWTHS = Direct(kernels.replace_drawn), Direct(loss_kernels.loss_growths)


class IncrementalPFI(ImportanceExplainer):
    """Incremental permutation feature importance of a model that learns.

    Parameters
    ----------
    model, features, loss, alpha, categorical, reservoir_size, warm_up, debias, seed, evaluator
        See :class:`~fluxplain.explain.importance.ImportanceExplainer`, also for errors.
    imputer
        What replaces a feature: ``"interventional"`` takes the values of all features from one
        past observation, ``"product"`` those of each from a separate one, ``"observational"``
        draws values that fit the observation's other features (conditional importance).
    sampler
        ``"geometric"`` (favours recent observations), ``"uniform"`` or ``"window"`` (the last
        ones); for ``"observational"`` only the first.
    inner_samples
        Replacement draws per observation, M; ``"all"``, for ``"interventional"`` only, takes each
        stored observation once: the exact expectation over the reservoir, for ``reservoir_size``
        times the inputs.

    References
    ----------
    iPFI, Section 3, Algorithm 1, for feature sets S as in Section 2; smoothing debiased as in iPDP,
    Algorithm 1. Observational replacement as in iSAGE, Section 3.2.2.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> pfi = IncrementalPFI(
    ...     Double(), ["a", "b"], loss="absolute_error", reservoir_size=2, seed=1
    ... )
    >>> for a in (1.0, 2.0, 3.0, 4.0):
    ...     values = pfi.explain_one({"a": a, "b": -a}, 2.0 * a)
    >>> {feature: round(value, 3) for feature, value in values.items()}
    {'a': 4.0, 'b': 0.0}
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        loss: AnyLoss | None = None,
        alpha: Alpha = 0.001,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        sampler: str = "geometric",
        reservoir_size: int = 100,
        warm_up: int | None = None,
        inner_samples: InnerSamples = 1,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        rng = random.Random(seed)
        method = PFI(
            Players(features),
            reservoir=make_reservoir(sampler, reservoir_size, rng),
            imputer=imputer,
            categorical=categorical,
            warm_up=warm_up,
            inner_samples=inner_samples,
            rng=rng,
        )
        super().__init__(model, method, loss=loss, alpha=alpha, debias=debias, evaluator=evaluator)


class PFI(Replacement):
    """Asks about M inputs per player, with its features replaced together.

    References
    ----------
    iPFI, Algorithm 1, lines 2, 3 and 5; observational draws as in iSAGE, Algorithms 3 and 4.
    """

    def ask(self, observed: Observed) -> Question | None:
        """Return the inputs, M per player in turn; None while warming up."""
        stored = self.stored(observed)
        if stored is None:
            return None
        chosen = draws(len(stored), self.inner_samples, self.rng)
        if self.conditional is not None:
            rows = self._conditional_rows(observed, len(chosen))
            return Question.of(rows[self.asked].reshape(-1, rows.shape[2]))
        if self.imputer == "product":
            stored, chosen = mixed(stored, len(chosen), self.rng), np.arange(len(chosen))
        return drawn(self.players, observed, stored, chosen, self.asked)

    def _conditional_rows(self, observed: Observed, n: int) -> Floats:
        """Return n inputs for each player, shape (players, n, columns), whichever are asked."""
        rows = copies(observed, len(self.players) * n).reshape(len(self.players), n, -1)
        for player, members in enumerate(self.players.members):
            values = self.conditional.draws(observed.x, members, n) if self.conditional else []
            columns = columns_of(observed.features, members)
            rows[player][:, columns] = encoded(observed.encoding, members, values)
        return rows

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:  # noqa: ARG002
        """Return each player's outputs with its features replaced."""
        labels, numbers, _ = table
        shape = len(self.names), question.n // len(self.names), len(labels)
        return Answers(self.names, labels, numbers.reshape(shape))

    @staticmethod
    def increments(
        loss: Loss, ys: Sequence[Target], labels: Labels, predictions: Floats, blocks: Floats
    ) -> Floats:
        """Return λ_t: the mean loss on the replaced inputs minus the loss on the observation.

        It is averaged over M draws (iPFI, Algorithm 1, line 3).
        """
        compiled = compiled_loss(loss, ys, labels)
        if compiled is not None:
            return _GROWTHS.call(*compiled, predictions, blocks)
        before = losses_on(loss, ys, labels, predictions[:, None, :])
        return loss_kernels.growths(before[:, 0], losses_on(loss, ys, labels, blocks))


def drawn(
    players: Players,
    observed: Observed,
    stored: Floats,
    chosen: Places,
    asked: Places,
) -> Question:
    """Return the question about each asked player's values replaced, m times in turn.

    ``stored`` has the shape (observations, features); the m ``chosen`` observations supply the
    values.
    """
    columns = columns_of(observed.features, players.features)

    def put(rows: Floats) -> None:
        _REPLACE.call(rows, columns, stored, chosen, players.starts, asked)

    return Question(len(asked) * len(chosen), put)
