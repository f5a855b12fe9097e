"""The evaluator for naive Bayes models."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from river import naive_bayes

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Table

Features = tuple[str, ...]

TINY = 10e-10
"""What River adds to each density and probability before it takes the logarithm."""


class NaiveBayesEvaluator(FastEvaluator):
    """Adds up the log-likelihoods of all inputs at once; :meth:`covers` is true for the model."""

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports the model."""
        return type(model) in _ADDITIONS

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        classes = list(self.model.class_counts)
        if not classes or observed.has_categories:
            return None
        likelihoods = np.zeros((len(rows), len(classes)))
        _ADDITIONS[type(self.model)](self.model, observed.features, rows, likelihoods)
        if type(self.model) is not naive_bayes.ComplementNB:
            likelihoods += [math.log(self.model.p_class(c)) for c in classes]
        _normalize(likelihoods)
        return Table(tuple(map(plain_label, classes)), likelihoods)


def _gaussian(model: Any, features: Features, rows: Floats, likelihoods: Floats) -> None:
    given = []
    for c in model.class_counts:
        of_class = model.gaussians.get(c, {})
        given.append([_mean_and_deviation(of_class.get(feature)) for feature in features])
    shape = (len(given), len(features), 2)
    _add_gaussians(rows, np.array(given, np.float64).reshape(shape), TINY, likelihoods)


def _mean_and_deviation(gaussian: Any) -> tuple[float, float]:
    """Return both; the deviation is 0 where River takes the density as 0."""
    if gaussian is not None:
        of = gaussian._var
        n = of.mean.n
        if n > of.ddof and of._S > 0.0:
            return of.mean._mean, math.sqrt(of._S / (n - of.ddof))
    return 0.0, 0.0


def _multinomial(model: Any, features: Features, rows: Floats, likelihoods: Floats) -> None:
    for place, c in enumerate(model.class_counts):
        weights = [math.log(model.p_feature_given_class(f, c)) for f in features]
        _add_weighted(rows, np.array(weights), place, likelihoods)


def _bernoulli(model: Any, features: Features, rows: Floats, likelihoods: Floats) -> None:
    present = (rows > model.true_threshold).astype(np.float64)
    for place, c in enumerate(model.class_counts):
        p = {f: model.p_feature_given_class(f, c) for f in model.feature_counts}
        absent = {f: math.log(TINY + (1.0 - p[f])) for f in p}
        likelihoods[:, place] = sum(absent.values())
        weights = [math.log(TINY + p[f]) - absent[f] if f in p else 0.0 for f in features]
        _add_weighted(present, np.array(weights), place, likelihoods)


def _complement(model: Any, features: Features, rows: Floats, likelihoods: Floats) -> None:
    for place, c in enumerate(model.class_counts):
        counts = {
            f: model.feature_totals[f] + model.alpha - frequency.get(c, 0)
            for f, frequency in model.feature_counts.items()
        }
        total = sum(counts.values())
        weights = [-math.log(counts.get(f, model.alpha) / total) for f in features]
        _add_weighted(rows, np.array(weights), place, likelihoods)


_ADDITIONS: dict[type, Callable[[Any, Features, Floats, Floats], None]] = {
    naive_bayes.BernoulliNB: _bernoulli,
    naive_bayes.ComplementNB: _complement,
    naive_bayes.GaussianNB: _gaussian,
    naive_bayes.MultinomialNB: _multinomial,
}
"""Adds what the features of each row say to the joint log-likelihoods, shape (rows, classes).

The arguments are the model, the features, the rows and the likelihoods. Each function follows
``joint_log_likelihood`` of its class.
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
def _add_weighted(rows: Floats, weights: Floats, place: int, likelihoods: Floats) -> None:
    """Add the weighted features to the likelihood of one class."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            likelihoods[row, place] += rows[row, column] * weights[column]


@compiled
def _normalize(likelihoods: Floats) -> None:
    """Turn log-likelihoods into probabilities; NaN in rows where any is not finite."""
    for row in range(likelihoods.shape[0]):
        largest, is_finite, total = -math.inf, True, 0.0
        for c in range(likelihoods.shape[1]):
            is_finite = is_finite and math.isfinite(likelihoods[row, c])
            largest = max(largest, likelihoods[row, c])
        if not is_finite:
            likelihoods[row, :] = math.nan
            continue
        for c in range(likelihoods.shape[1]):
            total += math.exp(likelihoods[row, c] - largest)
        log_total = largest + math.log(total)
        for c in range(likelihoods.shape[1]):
            likelihoods[row, c] = math.exp(likelihoods[row, c] - log_total)
