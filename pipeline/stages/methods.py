"""The methods of explanation, and what makes them from the settings."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.method import Method as Asks
from fluxplain.explain.pdp import PDP
from fluxplain.explain.pfi import PFI
from fluxplain.explain.points import RNGOf
from fluxplain.explain.sage import SAGE
from fluxplain.explain.storage import GeometricReservoir, make_reservoir
from fluxplain.schemas.explanation import Method

Increments = Callable[[Loss, Sequence[Target], Labels, Floats, Floats], Floats]
"""See :meth:`~fluxplain.explain.method.ImportanceMethod.increments`."""


class Kind(NamedTuple):
    """A method of explanation.

    Attributes
    ----------
    make
        Makes it from the settings, to ask about some names.
    increments
        Turns its answers into increments of an importance; None if they are curves.
    """

    make: Callable[[Config, Collection[str], RNGOf], Asks]
    increments: Increments | None = None


def _pfi(config: Config, asked: Collection[str], rng_of: RNGOf) -> Asks:
    settings, source = config.explain.ipfi, rng_of("ipfi")
    return PFI(
        config.players,
        reservoir=make_reservoir(settings.sampler, settings.reservoir_size, source),
        imputer=settings.imputer,
        categorical=config.categorical,
        warm_up=settings.warm_up,
        inner_samples=settings.inner_samples,
        rng=source,
        asked=asked,
    )


def _sage(config: Config, asked: Collection[str], rng_of: RNGOf) -> Asks:
    settings, source = config.explain.isage, rng_of("isage")
    return SAGE(
        config.players,
        reservoir=GeometricReservoir(settings.reservoir_size, source),
        imputer=settings.imputer,
        categorical=config.categorical,
        alpha=config.explain.alphas[0],
        warm_up=settings.warm_up,
        inner_samples=settings.inner_samples,
        rng=source,
        asked=asked,
    )


def _pdp(config: Config, asked: Collection[str], rng_of: RNGOf) -> Asks:
    return PDP(
        [name for name in asked if name not in config.pairs],
        {name: pair for name, pair in config.pairs.items() if name in asked},
        config.explain.ipdp.grid_settings(),
        categorical=config.categorical,
        rng_of=lambda feature: rng_of(f"ipdp/{feature}"),
    )


KINDS: dict[Method, Kind] = {
    "ipfi": Kind(_pfi, PFI.increments),
    "isage": Kind(_sage, SAGE.increments),
    "ipdp": Kind(_pdp),
}

OF_EFFECT = frozenset(method for method, kind in KINDS.items() if kind.increments is None)
"""Methods whose answers are curves: they need no label."""
