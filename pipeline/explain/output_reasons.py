"""Why the model gave an output: what each feature added to it, as Shapley values."""

import random
from typing import NamedTuple, Self

import numpy as np

from fluxplain.evaluate import (
    Encoding,
    Evaluator,
    NoOutputError,
    Observation,
    Observed,
    Table,
    as_evaluator,
)
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.evaluator import Label
from fluxplain.explain.descriptions import Described
from fluxplain.explain.explainers import check_observation
from fluxplain.explain.importance import Importances
from fluxplain.explain.method import ask_model
from fluxplain.explain.parameter_checks import check_warm_up
from fluxplain.explain.players import Features, Players
from fluxplain.explain.shapley import Contributions, Effort, Game, Way, contributions
from fluxplain.explain.smoothing import Alpha, ExponentialMeans, check_alphas
from fluxplain.explain.storage import Delay, GeometricReservoir, entering
from fluxplain.explain.unusable_values import error_of_value

DEFAULT_EFFORT = Effort(error=0.05, most_inputs=10_000)


class OutputReasons(NamedTuple):
    """What each feature or group added to an output.

    Attributes
    ----------
    label
        The class whose probability is explained; None for a number.
    output, base
        The output on the observation, and its mean over the stored ones.
    contributions
        Name → what it adds. With the base they sum to the output.
    std_errors
        Name → standard error of the contribution; 0 where it is exact. It is an estimate, too: it
        may also be 0 where all permutations happen to agree.
    way
        ``"structure"`` and ``"subsets"`` are exact, ``"permutations"`` are estimates.

    Examples
    --------
    >>> reasons = OutputReasons(None, 4.0, 1.0, {"a": 1.0, "b": -0.5, "c": 2.5}, {}, "subsets")
    >>> reasons.largest(2)
    [('c', 2.5), ('a', 1.0)]
    """

    label: Label | None
    output: float
    base: float
    contributions: dict[str, float]
    std_errors: dict[str, float]
    way: Way

    @classmethod
    def of(cls, found: Contributions, names: tuple[str, ...], label: Label | None) -> Self:
        """Return the reasons for the output with one of the labels."""
        place = found.labels.index(label)
        values, errors = found.values[:, place].tolist(), found.std_errors[:, place].tolist()
        return cls(
            label,
            found.output.item(place),
            found.base.item(place),
            dict(zip(names, values, strict=True)),
            dict(zip(names, errors, strict=True)),
            found.way,
        )

    def largest(self, n: int) -> list[tuple[str, float]]:
        """Return the n largest contributions by absolute value, of equals the first."""
        return sorted(self.contributions.items(), key=lambda item: -abs(item[1]))[:n]


class Background:
    """Stored observations against which outputs are explained, most of them recent ones.

    Observations that resemble those before wait, as for iPFI and iSAGE.
    """

    def __init__(
        self, players: Players, size: int, rng: random.Random, warm_up: int | None = None
    ) -> None:
        self.players = players
        self.reservoir = GeometricReservoir(size, rng)
        self.delay = Delay(players.features, self.reservoir.size)
        self.warm_up = check_warm_up(warm_up, self.reservoir.size)

    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored observations, which may extend the encoding."""
        self.reservoir.numbers(encoding, self.players.features)

    def contributions(
        self,
        evaluator: Evaluator,
        observed: Observed,
        prediction: Table,
        effort: Effort,
        rng: random.Random,
    ) -> Contributions | None:
        """Return what each player adds to the output, ``prediction``; None while warming up.

        Also None if the model knows no class yet.
        """
        stored = self.reservoir.numbers(observed.encoding, self.players.features)
        if len(stored) < self.warm_up or not prediction.labels:
            return None
        return contributions(
            Game(evaluator, observed, prediction, stored, self.players), effort, rng
        )

    def store(self, observed: Observed) -> None:
        """Keep the observation, once later ones do not resemble it."""
        for _ in entering(self.delay, self.reservoir, observed):
            pass


class IncrementalReasons(Importances, Described):
    """Why a model that learns gave each output, and which features move its outputs most.

    A contribution is an interventional Shapley value of the output on one observation, against the
    stored ones. It needs no label. It is exact for linear models (logistic ones up to 12 features),
    for trees and forests as arrays whose leaves are constant, and for few features; else it is
    estimated from permutations, with a standard error. "Reasons for single outputs" in the
    documentation has the exceptions.

    The estimates, ``values``, are smoothed means of the absolute contributions; with classes, of
    half their sum over all of them, which with two is the contribution to either. They show what
    the model relies on where iPDP is flat, as effects cancel, and before any label comes.

    Parameters
    ----------
    model, features, alpha, reservoir_size, warm_up, debias, seed, evaluator
        See :class:`~fluxplain.explain.importance.ImportanceExplainer`, also for errors.
    error, most_inputs
        Sampling ends when no standard error is above ``error``, a share of the largest
        contribution, or one more step would ask about more than ``most_inputs`` inputs. At least
        ``reservoir_size`` and 16 for each feature are asked about.

    References
    ----------
    Lundberg, Lee (2017), "A Unified Approach to Interpreting Model Predictions", with
    interventional expectations; Castro, Gómez, Tejada (2009), "Polynomial calculation of the
    Shapley value based on sampling"; Mitchell, Cooper, Frank, Holmes (2022), "Sampling Permutations
    for Shapley Value Estimation", Section 3, antithetic permutations.

    Examples
    --------
    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"] + x["b"]
    >>> explainer = IncrementalReasons(Double(), ["a", "b"], reservoir_size=4, seed=1)
    >>> for a in (1.0, 2.0, 3.0, 4.0, 5.0):
    ...     reasons = explainer.explain_one({"a": a, "b": 7.0})
    >>> reasons.output, reasons.base, reasons.contributions
    (17.0, 12.0, {'a': 5.0, 'b': 0.0})
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        alpha: Alpha = 0.001,
        reservoir_size: int = 100,
        warm_up: int | None = None,
        error: float = DEFAULT_EFFORT.error,
        most_inputs: int = DEFAULT_EFFORT.most_inputs,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        self.model = model
        self.players = Players(features)
        self._effort = check_effort(error, most_inputs)
        self.evaluator = as_evaluator(model, evaluator)
        self._encoding = Encoding()
        self._rng = random.Random(seed)
        self._background = Background(self.players, reservoir_size, self._rng, warm_up)
        reach = 2 * self._background.reservoir.size
        alphas = check_alphas(alpha)
        means = ExponentialMeans(len(self.players), alphas, debias=debias, reach=reach)
        super().__init__(self.players.names, means, 0)

    def explain_one(self, x: Observation, label: Label | None = None) -> OutputReasons | None:
        """Explain the output on an observation, before the model learns it; then store it.

        Parameters
        ----------
        x
            Feature → value, as a dictionary or a row with names, such as a pandas row; every
            explained feature must be there.
        label
            The class whose probability is explained; by default the most probable one.

        Returns
        -------
        None while warming up, or if the model has no output, or does not know the class.
        """
        found, observed = self._found(x)
        if found is not None:
            self._means.update(absolute(found)[None])
        self._background.store(observed)
        return None if found is None else self._reasons(found, label)

    def reasons(self, x: Observation, label: Label | None = None) -> OutputReasons | None:
        """Explain the output on any input by the present model; see :meth:`explain_one`."""
        found, _ = self._found(x)
        return None if found is None else self._reasons(found, label)

    def _explained(self) -> int:
        return self._means.n

    def _settings(self) -> dict[str, str]:
        return {"alpha": " and ".join(map(str, self._means.alphas))}

    def _found(self, x: Observation) -> tuple[Contributions | None, Observed]:
        self._encoding.renew()
        self._background.prepare(self._encoding)
        try:
            observed = self._encoding.observe(x)
            check_observation(observed, self.players.features)
            return self._contributions(observed), observed
        except Exception as error:
            if (named := error_of_value(error, x, self._encoding)) is not None:
                raise named from error
            raise

    def _contributions(self, observed: Observed) -> Contributions | None:
        try:
            prediction, _ = ask_model(self.evaluator, observed, [])
        except NoOutputError:
            return None
        given = self.evaluator, observed, prediction, self._effort, self._rng
        return self._background.contributions(*given)

    def _reasons(self, found: Contributions, label: Label | None) -> OutputReasons | None:
        if label is None:
            label = found.labels[int(found.output.argmax())]
        return OutputReasons.of(found, self.players.names, label) if label in found.labels else None


def absolute(found: Contributions) -> Floats:
    """Return the players' absolute contributions, shape (players,).

    With classes, half of their sum over all of them.
    """
    total: Floats = np.abs(found.values).sum(axis=1)
    return total if found.labels == (None,) else total / 2.0


def check_effort(error: float, most_inputs: int) -> Effort:
    """Return when sampling ends, or raise ``ValueError`` for a number out of its range."""
    if not 0.0 < error <= 1.0:
        raise ValueError(f"error is {error!r}, but must lie in (0, 1]")
    if not isinstance(most_inputs, int) or most_inputs < 1:
        raise ValueError(f"most_inputs is {most_inputs!r}, but must be an integer of at least 1")
    return Effort(error, most_inputs)
