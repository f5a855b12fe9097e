"""The evaluator for naive Bayes models."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from river import naive_bayes

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.generic import GenericEvaluator, plain_label
from fluxplain.evaluate.table import Table

Features = tuple[str, ...]

TINY = 10e-10
"""What River adds to each density and probability before it takes the logarithm."""


class NaiveBayesEvaluator:
    """Adds up the log-likelihoods of all inputs at once.

    ``model`` is of a class for which :meth:`covers` is true.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._one_by_one = GenericEvaluator(model)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports the model."""
        return type(model) in _LIKELIHOODS

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        observed, rows = inputs
        classes = list(self.model.class_counts)
        if classes and not observed.has_categories:
            likelihoods = _LIKELIHOODS[type(self.model)](self.model, observed.features, rows)
            if _normalize(likelihoods):
                return Table(tuple(map(plain_label, classes)), likelihoods)
        return self._one_by_one(inputs)  # River fails, or has its own answer


def _gaussian(model: Any, features: Features, rows: Floats) -> Floats:
    given = []
    for c in model.class_counts:
        of_class = model.gaussians.get(c, {})
        given.append([_mean_and_deviation(of_class.get(feature)) for feature in features])
    likelihoods = _priors(model, rows)
    shape = (len(given), len(features), 2)
    _add_gaussians(rows, np.array(given, np.float64).reshape(shape), TINY, likelihoods)
    return likelihoods


def _mean_and_deviation(gaussian: Any) -> tuple[float, float]:
    """Return both; the deviation is 0 where River takes the density as 0."""
    if gaussian is not None:
        of = gaussian._var
        n = of.mean.n
        if n > of.ddof and of._S > 0.0:
            return of.mean._mean, math.sqrt(of._S / (n - of.ddof))
    return 0.0, 0.0


def _multinomial(model: Any, features: Features, rows: Floats) -> Floats:
    weights = (
        [math.log(model.p_feature_given_class(f, c)) for f in features] for c in model.class_counts
    )
    return _weighted(rows, weights, _priors(model, rows))


def _bernoulli(model: Any, features: Features, rows: Floats) -> Floats:
    likelihoods, present = _priors(model, rows), rows > model.true_threshold
    absent, weights = [], []
    for c in model.class_counts:
        p = {f: model.p_feature_given_class(f, c) for f in model.feature_counts}
        off = {f: math.log(TINY + (1.0 - p[f])) for f in p}
        absent.append(sum(off.values()))
        weights.append([math.log(TINY + p[f]) - off[f] if f in p else 0.0 for f in features])
    likelihoods += absent
    return _weighted(present.astype(np.float64), weights, likelihoods)


def _complement(model: Any, features: Features, rows: Floats) -> Floats:
    weights = []
    for c in model.class_counts:
        counts = {
            f: model.feature_totals[f] + model.alpha - frequency.get(c, 0)
            for f, frequency in model.feature_counts.items()
        }
        total = sum(counts.values())
        weights.append([-math.log(counts.get(f, model.alpha) / total) for f in features])
    return _weighted(rows, weights, np.zeros((len(rows), len(weights))))


def _priors(model: Any, rows: Floats) -> Floats:
    priors = [math.log(model.p_class(c)) for c in model.class_counts]
    return np.repeat(np.array([priors]), len(rows), axis=0)


def _weighted(rows: Floats, weights: Iterable[list[float]], likelihoods: Floats) -> Floats:
    given = np.array(list(weights), np.float64).reshape(likelihoods.shape[1], rows.shape[1])
    _add_weighted(rows, given, likelihoods)
    return likelihoods


_LIKELIHOODS: dict[type, Callable[[Any, Features, Floats], Floats]] = {
    naive_bayes.BernoulliNB: _bernoulli,
    naive_bayes.ComplementNB: _complement,
    naive_bayes.GaussianNB: _gaussian,
    naive_bayes.MultinomialNB: _multinomial,
}
"""Model, features and rows → the joint log-likelihoods, shape (rows, classes).

Each follows ``joint_log_likelihood`` of its class.
"""


@compiled
def _add_gaussians(rows: Floats, given: Floats, tiny: float, likelihoods: Floats) -> None:
    """Add the logarithms of each feature's densities.

    ``given`` has the mean and the deviation of each class and feature, shape (classes, features,
    2); a deviation of 0 means a density of 0.
    """
    for c in range(given.shape[0]):
        for column in range(rows.shape[1]):
            mean, deviation = given[c, column, 0], given[c, column, 1]
            last = term = math.nan
            for row in range(rows.shape[0]):
                if rows[row, column] != last:  # most rows share the observation's value
                    last = rows[row, column]
                    density = 0.0
                    if deviation > 0.0:
                        z = (last - mean) / deviation
                        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / deviation
                    term = math.log(tiny + density)
                likelihoods[row, c] += term


@compiled
def _add_weighted(rows: Floats, weights: Floats, likelihoods: Floats) -> None:
    """Add the weighted features; ``weights`` has the shape (classes, features)."""
    for row in range(rows.shape[0]):
        for c in range(weights.shape[0]):
            for column in range(rows.shape[1]):
                likelihoods[row, c] += rows[row, column] * weights[c, column]


@compiled
def _normalize(likelihoods: Floats) -> bool:
    """Turn log-likelihoods into probabilities; return whether all of them are finite."""
    for row in range(likelihoods.shape[0]):
        largest = -math.inf
        for c in range(likelihoods.shape[1]):
            if not math.isfinite(likelihoods[row, c]):
                return False
            largest = max(largest, likelihoods[row, c])
        total = 0.0
        for c in range(likelihoods.shape[1]):
            total += math.exp(likelihoods[row, c] - largest)
        log_total = largest + math.log(total)
        for c in range(likelihoods.shape[1]):
            likelihoods[row, c] = math.exp(likelihoods[row, c] - log_total)
    return True
