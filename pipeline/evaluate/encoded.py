"""The evaluator for a linear model behind encoders, scalers, and selections of features."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from river import compose, preprocessing

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.encoding import Decoder, Floats, Inputs, Places
from fluxplain.evaluate.fast import CopyingEvaluator
from fluxplain.evaluate.linear import linear_table
from fluxplain.evaluate.linear_attribution import linear_attribution
from fluxplain.evaluate.scaled import is_by_feature, scale
from fluxplain.evaluate.table import Table

Route = tuple[Any, ...]
"""Encoders and scalers that a feature passes, one after the other."""


class EncodedLinearEvaluator(CopyingEvaluator):
    """Adds up what the values of each input contribute; each value is encoded once.

    ``model`` is the explained pipeline; :func:`are_by_feature` is true for its transformers, and
    :func:`~fluxplain.evaluate.linear.is_linear` for the model at its end.
    """

    def _forget(self) -> None:
        *transformers, self._final = self.model.steps.values()
        self._routes_of = cache(partial(_routes, transformers))

    def _table(self, inputs: Inputs) -> Table | None:
        shares = self._shares(inputs)
        return None if shares is None else self._added(shares)

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        observed, rows = inputs
        shares = self._shares(Inputs(observed, np.concatenate((observed.numbers[None], rows))))
        if shares is None:
            return None
        own, terms = shares[0], shares[1:]
        intercept = float(self._final.intercept)
        return linear_attribution(self._added(terms), terms, own, intercept, players)

    def _added(self, shares: Floats) -> Table:
        return linear_table(self._final, shares, np.ones(shares.shape[1]))

    def _shares(self, inputs: Inputs) -> Floats | None:
        """Return what the values add, shape (inputs, columns); None if the model must be asked."""
        observed, rows = inputs
        weights, features = self._final.weights, observed.features
        shares = np.zeros((len(rows), len(features)))
        for column, feature in enumerate(features):
            routes, decode = self._routes_of(feature), observed.encoding.decoder(feature)
            if sum(not _is_one_hot(route) for route in routes) > 1:
                return None  # one of two numbers of the same name wins
            if any(map(_is_one_hot, routes)) and any(f"{feature}_" in name for name in features):
                return None  # another feature may have the name of an encoded value
            for route in routes:
                numbers = rows[:, column]
                shares[:, column] += _contributions(route, feature, decode, numbers, weights)
        return shares


def are_by_feature(transformers: Sequence[Any]) -> bool:
    """Return whether transformers encode each feature by itself, in a way known here.

    One-hot encoding gives features other names, so it must come last.
    """
    return all(map(_is_by_feature, transformers)) and not any(map(_renames, transformers[:-1]))


def _is_by_feature(transformer: Any) -> bool:
    if type(transformer) is compose.TransformerUnion:
        return all(map(_is_by_feature, transformer.transformers.values()))
    if type(transformer) is compose.Pipeline:
        return are_by_feature(list(transformer.steps.values()))
    if type(transformer) is preprocessing.OneHotEncoder:
        return not transformer.drop_first
    return is_by_feature(transformer) or type(transformer) in _OTHERS


_OTHERS = {compose.Discard, compose.Select, preprocessing.OrdinalEncoder}


def _renames(transformer: Any) -> bool:
    if type(transformer) is compose.TransformerUnion:
        return any(map(_renames, transformer.transformers.values()))
    if type(transformer) is compose.Pipeline:
        return any(map(_renames, transformer.steps.values()))
    return type(transformer) is preprocessing.OneHotEncoder


def _routes(transformers: Sequence[Any], feature: str) -> list[Route]:
    """Return the ways of a feature through some transformers."""
    routes: list[Route] = [()]
    for transformer in transformers:
        more = _through(transformer, feature)
        routes = [(*route, *rest) for route in routes for rest in more]
    return routes


def _through(transformer: Any, feature: str) -> list[Route]:
    if type(transformer) is compose.TransformerUnion:
        parts = transformer.transformers.values()
        return [route for part in parts for route in _through(part, feature)]
    if type(transformer) is compose.Pipeline:
        return _routes(list(transformer.steps.values()), feature)
    if type(transformer) is compose.Select:
        return [()] if feature in transformer.keys else []
    if type(transformer) is compose.Discard:
        return [] if feature in transformer.keys else [()]
    return [(transformer,)]


def _is_one_hot(route: Route) -> bool:
    return bool(route) and type(route[-1]) is preprocessing.OneHotEncoder


def _contributions(
    route: Route, feature: str, decode: Decoder, numbers: Floats, weights: Any
) -> Floats:
    """Return what a feature's values contribute, shape (inputs,); ``numbers`` encode them here."""
    for each in route:
        if type(each) is preprocessing.OneHotEncoder:
            return _by_value(numbers, decode, partial(_weight, each, feature, weights))
        if type(each) is preprocessing.OrdinalEncoder:
            numbers, decode = _by_value(numbers, decode, partial(_code, each, feature)), float
        else:
            numbers = scale(each, (feature,), numbers[:, None])[:, 0]
    contributions: Floats = numbers * weights.get(feature, 0.0)
    return contributions


def _weight(encoder: Any, feature: str, weights: Mapping[str, float], value: Any) -> float:
    is_known = encoder.categories is None or value in encoder.categories[feature]
    return weights.get(f"{feature}_{value}", 0.0) if is_known else 0.0


def _code(encoder: Any, feature: str, value: Any) -> float:
    code: float = encoder.transform_one({feature: value})[feature]
    return code


def _by_value(numbers: Floats, decode: Decoder, of: Callable[[Any], float]) -> Floats:
    """Return a function of the values, called once for each that is there."""
    given = numbers.tolist()
    found = {number: of(decode(number)) for number in set(given)}
    return np.array([found[number] for number in given], np.float64)
