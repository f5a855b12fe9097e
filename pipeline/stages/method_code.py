"""Loads the code of a method, and makes the method from the settings."""

import random
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import Any, cast

from fluxplain.config import Config
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.method import Given
from fluxplain.explain.method import Method as Asks
from fluxplain.explain.point_storage import RNGOf
from fluxplain.schemas.methods import METHODS, Method

Increments = Callable[[Loss, Sequence[Target], Labels, Floats, Floats], Floats]
"""See :meth:`~fluxplain.explain.method.ImportanceMethod.increments`."""


def make_method(method: Method, config: Config, asked: Collection[str], rng_of: RNGOf) -> Asks:
    """Return a method with its settings, which asks about some features, groups and pairs."""
    given = Given(
        players=config.players,
        pairs=config.pairs,
        asked=asked,
        categorical=config.categorical,
        alpha=config.explain.alphas[0],
        rng_of=lambda name: rng_of(f"{method}/{name}" if name else method),
    )
    made: Asks = _code(method).configured(given, **config.explain.of(method).model_dump())
    return made


def reach_of(method: Method, config: Config) -> int | None:
    """Return over how many observations a method's answers depend on each other; see the method."""
    return make_method(method, config, (), random.Random).reach


def increments_of(method: Method) -> Increments:
    """Return the function that turns a method's answers into increments."""
    return cast(Increments, _code(method).increments)


def signed_of(method: Method) -> Callable[[Floats], Floats]:
    """Return the function that gives the numbers with signs of which the increments are sizes."""
    return cast(Callable[[Floats], Floats], _code(method).signed)


@cache
def _code(method: Method) -> Any:
    """Return the class of a method; imported when it is first needed."""
    return resolve_name(METHODS[method].code)
