"""Batch explanations of the last observations, recomputed from time to time.

They are the baselines of iPFI and iSAGE for a model that learns.
"""

import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fluxplain.baselines.batch import Batch
from fluxplain.baselines.batch_pfi import DEFAULT_PERMUTATIONS, check_permutations, permuted_pfi
from fluxplain.baselines.batch_sage import permuted_sage
from fluxplain.evaluate import (
    Encoding,
    Evaluator,
    NoOutputError,
    Observation,
    Value,
    as_evaluator,
    as_observation,
)
from fluxplain.explain.explainers import check_observation
from fluxplain.explain.imputers import InnerSamples, check_inner_samples
from fluxplain.explain.losses import AnyLoss, Target, loss_for
from fluxplain.explain.players import Features, Players
from fluxplain.explain.sage import DEFAULT_INNER_SAMPLES


class WindowExplainer:
    """Batch importances of the current model on the last ``window`` observations.

    They are recomputed every ``stride`` observations.
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        loss: AnyLoss | None,
        window: int,
        stride: int,
        seed: int | None,
        evaluator: Evaluator | str,
        explain: Callable[[Batch, random.Random], dict[str, float]],
    ) -> None:
        self.players = Players(features)
        self.loss = loss_for(model, loss)
        self.evaluator = as_evaluator(model, evaluator)
        self.stride = stride
        self._explain = explain
        self._values = dict.fromkeys(self.players.names, 0.0)
        self._window: deque[tuple[dict[str, Value], Target]] = deque(maxlen=window)
        self._until_next = window
        self._rng = random.Random(seed)

    @property
    def values(self) -> dict[str, float]:
        """Feature → last computed importance, in units of the loss; 0 before the first."""
        return dict(self._values)

    def explain_one(self, x: Observation, y: Target) -> dict[str, float]:
        """Add one observation, before the model learns it, and return the last estimates.

        Parameters
        ----------
        x
            Feature → value; every explained feature must be there.
        y
            The label.
        """
        x = dict(as_observation(x))
        check_observation(Encoding().observe(x), self.players.features)
        self._window.append((x, y))
        self._until_next -= 1
        if not self._until_next:
            self._until_next = self.stride
            xs, ys = zip(*self._window, strict=True)
            batch = Batch(xs, ys, self.players, loss=self.loss, evaluator=self.evaluator)
            with suppress(NoOutputError):  # the model may have no output before it learns
                self._values = self._explain(batch, self._rng)
        return self.values


class IntervalPFI(WindowExplainer):
    """PFI of consecutive intervals of the stream, each computed with the model at its end.

    Parameters
    ----------
    model, features, loss, seed, evaluator
        See :mod:`fluxplain.baselines`, also for errors.
    interval
        Observations in an interval, at least 2.
    permutations
        How many random permutations are averaged, at least 1.

    References
    ----------
    iPFI, Section 4, Experiment B.

    Examples
    --------
    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> pfi = IntervalPFI(Double(), ["a"], interval=3, loss="absolute_error", seed=1)
    >>> [
    ...     round(pfi.explain_one({"a": a}, 2.0 * a)["a"], 1)
    ...     for a in (1.0, 2.0, 3.0, 5.0, 5.0, 5.0)
    ... ]
    [0.0, 0.0, 2.6, 2.6, 2.6, 0.0]
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        interval: int = 1000,
        loss: AnyLoss | None = None,
        permutations: int = DEFAULT_PERMUTATIONS,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        super().__init__(
            model,
            features,
            loss=loss,
            window=_at_least(2, "interval", interval),
            stride=interval,
            seed=seed,
            evaluator=evaluator,
            explain=partial(permuted_pfi, permutations=check_permutations(permutations)),
        )


class SlidingWindowSAGE(WindowExplainer):
    """SAGE values of the last observations, recomputed with the current model.

    Each observation is explained window / stride times, by default 20 times, and costs as many
    times more than iSAGE.

    Parameters
    ----------
    model, features, loss, seed, evaluator
        See :mod:`fluxplain.baselines`, also for errors.
    window
        Number of observations that are explained together, at least 2. Nothing is explained before
        the window is full.
    stride
        Observations between two computations, at least 1; by default a twentieth of the window.
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"`` takes each
        observation of the window once: the exact expectation over it.

    References
    ----------
    iSAGE, Section 3.0.1 (SW-SAGE), and Section 4 for the stride.

    Examples
    --------
    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> sage = SlidingWindowSAGE(
    ...     Double(), ["a", "b"], window=4, stride=1, loss="absolute_error", seed=1
    ... )
    >>> for a in (1.0, 2.0, 3.0, 4.0, 5.0):
    ...     values = sage.explain_one({"a": a, "b": 7.0}, 2.0 * a)
    >>> values
    {'a': 2.0, 'b': 0.0}
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        window: int = 1000,
        stride: int | None = None,
        loss: AnyLoss | None = None,
        inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        if stride is None:
            stride = max(window // 20, 1)
        super().__init__(
            model,
            features,
            loss=loss,
            window=_at_least(2, "window", window),
            stride=_at_least(1, "stride", stride),
            seed=seed,
            evaluator=evaluator,
            explain=partial(permuted_sage, inner_samples=check_inner_samples(inner_samples)),
        )


def _at_least(least: int, name: str, number: int) -> int:
    if number < least:
        raise ValueError(f"{name} is {number!r}, but must be at least {least}")
    return number
