"""Base of iPFI and iSAGE: one smoothed number per feature."""

from math import isfinite
from typing import Any

import numpy as np

from fluxplain.evaluate import Evaluator, Observation, Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import aligned
from fluxplain.explain.explainers import Explainer, explain_together
from fluxplain.explain.losses import AnyLoss, Target, check_label, loss_for
from fluxplain.explain.method import ImportanceMethod, OutputMethod, Question
from fluxplain.explain.smoothing import (
    Alpha,
    Estimated,
    Estimates,
    ExponentialMeans,
    check_alphas,
)


class Importances(Estimates):
    """Importances of features and groups, in units of the loss, smoothed with one rate."""

    def __init__(self, names: tuple[str, ...], means: ExponentialMeans, place: int) -> None:
        self._names = names
        self._means = means
        self._place = place

    @property
    def alpha(self) -> float:
        """The smoothing rate."""
        return self._means.alphas[self._place]

    def _numbers(self, of: Estimated) -> dict[str, float]:
        """Return the values, variances or standard errors by name."""
        return self._by_name(getattr(self._means, of)[self._place])

    def _by_name(self, numbers: Floats) -> dict[str, float]:
        return dict(zip(self._names, numbers.tolist(), strict=True))


class ImportanceExplainer(Importances, Explainer):
    """Smoothed increments, one sequence for each feature or group of features.

    With several smoothing rates, its own estimates are those with the first one.

    Parameters
    ----------
    model, debias, seed, evaluator
        See :class:`~fluxplain.explain.explainers.Explainer`.
    features
        Names of the features to explain. A mapping among them, such as
        ``{"place": ["lat", "lon"]}``, defines groups of features that are explained as one.
    loss
        ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``,
        ``"squared_error"``, or a function of (label, output). Or a metric of River that is the mean
        of a loss of each record, or its class: ``CrossEntropy`` and ``LogLoss`` are
        ``"cross_entropy"``, ``Accuracy`` is ``"zero_one"``, ``MAE`` and ``MSE`` are the errors.
        Earlier records that an object has seen do not count. By default ``"squared_error"`` for a
        regressor of River or scikit-learn, ``"cross_entropy"`` for every other model.
    alpha
        Smoothing rate, in (0, 1], or several: ``at(rate)`` has the estimates with any of them, from
        the same model outputs.
    categorical
        Which features are categorical, for the imputer ``"observational"``. By default those whose
        first value is text or a boolean.
    reservoir_size
        Number of past observations that replacement values are drawn from; for ``"observational"``,
        of values in each leaf of a feature's tree.
    warm_up
        Observations to store before the first explanation, at least 1 and at most
        ``reservoir_size``, which is the default.

    Raises
    ------
    ValueError, TypeError
        As :class:`~fluxplain.explain.explainers.Explainer`.
    """

    _method: ImportanceMethod

    def __init__(
        self,
        model: object,
        method: ImportanceMethod,
        *,
        loss: AnyLoss | None,
        alpha: Alpha,
        debias: bool,
        evaluator: Evaluator | str,
    ) -> None:
        self.players = method.players
        means = ExponentialMeans(
            len(self.players), check_alphas(alpha), debias=debias, reach=method.reach
        )
        Importances.__init__(self, self.players.names, means, 0)
        self.loss = loss_for(model, loss)
        Explainer.__init__(self, model, method, self.players.features, evaluator)
        self._increments = np.zeros((1, len(self.players)))

    def explain_one(self, x: Observation, y: Target) -> dict[str, float]:
        """Explain one observation, before the model learns it; return the current estimates.

        Parameters
        ----------
        x
            Feature → value, as a dictionary or a row with names, such as a pandas row; every
            explained feature must be there.
        y
            The label.

        Raises
        ------
        ValueError, TypeError
            If the model or the explainer cannot use a value; the message names it.
        """
        [values] = explain_together([self], x, y)
        return values

    def _take(self, y: Any, question: Question | None, prediction: Table, table: Table) -> None:
        """Smooth the increments."""
        if question is None:
            return
        if not isinstance(self._method, OutputMethod):
            check_label(self.loss, y, prediction.labels)
        _, labels, blocks, _ = self._method.answer(question, prediction, table)
        blocks = np.asarray(blocks)
        own = aligned(prediction, labels)
        increments = self._method.increments(self.loss, [y], labels, own, blocks)
        if not isfinite(sum(increments.tolist())):
            for name, increment in self._by_name(increments).items():
                if not isfinite(increment):
                    raise ValueError(
                        f"the increment of {name!r} is not finite: the model's outputs are too "
                        f"large, or too far from the label {y!r}"
                    )
        self._increments = increments[None]
        self._means.update(self._increments)

    def _explained(self) -> int:
        return self._means.n

    def _settings(self) -> dict[str, str]:
        name = getattr(self.loss, "__name__", type(self.loss).__name__)
        return {"loss": name, "alpha": " and ".join(map(str, self._means.alphas))}

    @property
    def increments(self) -> dict[str, float]:
        """Feature → increment of the last explained observation; empty before the first."""
        return self._by_name(self._increments[0]) if self._means.n else {}

    def at(self, alpha: float) -> Importances:
        """Return the estimates with one of the smoothing rates.

        Raises
        ------
        ValueError
            If no estimates have this rate.
        """
        known = self._means.alphas
        if alpha in known:
            return Importances(self._names, self._means, known.index(alpha))
        raise ValueError(f"alpha is {alpha!r}, but must be one of {', '.join(map(str, known))}")
