"""Settings of the evaluation points of partial dependence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fluxplain.explain.parameter_checks import check_share, check_warm_up

GridKind = Literal["quantile-range", "range", "quantiles"]
StorageKind = Literal["frequency", "age-weighted"]

MOST_CURVES = 1000
"""Largest number of ICE curves that are kept for a feature."""


MOST_ANCHORED = 100
"""Largest number of evaluation points that lie on a lattice: more are so close that it hardly
matters, and to seek their places would take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """How the evaluation points of features are chosen.

    The settings are those of :class:`~fluxplain.explain.pdp.EffectExplainer`: ``kind`` is its
    ``grid``, ``size`` its ``grid_size``. One out of its range raises ``ValueError``; the message
    names it.
    """

    kind: GridKind = "quantile-range"
    size: int = 10
    storage: StorageKind = "frequency"
    storage_size: int = 100
    window: int | None = None
    entrance_probability: float = 1.0
    warm_up: int | None = None

    def __post_init__(self) -> None:
        _check_choice("grid", self.kind, get_args(GridKind))
        _check_choice("storage", self.storage, get_args(StorageKind))
        if self.size < 2:
            raise ValueError(f"grid_size is {self.size!r}, but must be at least 2")
        check_share("entrance_probability", self.entrance_probability)
        if self.window is not None and self.window < 1:
            raise ValueError(f"window is {self.window!r}, but must be at least 1")
        if self.window is not None and self.kind != "range":
            raise ValueError(
                f"window is {self.window!r}, but only the grid 'range' has one, not {self.kind!r}"
            )
        check_warm_up(self.warm_up, self.capacity)

    @property
    def capacity(self) -> int:
        """Number of values in each feature's full storage, at least."""
        return min(self.storage_size, self.window or self.storage_size)

    @property
    def reach(self) -> int:
        """Twice the number of observations that the storages cover."""
        values = self.window or self.storage_size
        return 2 * math.ceil(values / self.entrance_probability)

    @property
    def is_anchored(self) -> bool:
        """Whether evaluation points lie on a lattice; see :mod:`~fluxplain.explain.lattice`."""
        return self.kind != "quantiles" and self.size <= MOST_ANCHORED

    @property
    def needed(self) -> int:
        """Values needed for a grid."""
        return check_warm_up(self.warm_up, self.capacity)


SEPARATOR = "|"
"""Separates the names of a pair."""


def pair_name(pair: Sequence[str]) -> str:
    """Return the key of a pair's explanations."""
    return SEPARATOR.join(pair)


def check_pairs(pairs: Sequence[Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Return the pairs by name, or raise ``ValueError`` if there is none, or an invalid one."""
    named = {}
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"pairs has {pair!r}, but must have two different features in each")
        if any(SEPARATOR in feature for feature in pair):
            raise ValueError(
                f"pairs has {pair!r}, but names must not contain {SEPARATOR!r}, their separator"
            )
        if pair_name(pair) in named or pair_name(pair[::-1]) in named:
            raise ValueError(f"pairs has {pair!r} more than once")
        named[pair_name(pair)] = (pair[0], pair[1])
    if not named:
        raise ValueError("pairs is empty: name at least one")
    return named


def check_ice(ice: int) -> int:
    """Return the number of kept curves, or raise ``ValueError`` if it is out of range."""
    if not 0 <= ice <= MOST_CURVES:
        raise ValueError(f"ice is {ice!r}, but must lie in [0, {MOST_CURVES:,}]")
    return ice


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, allowed))}")
