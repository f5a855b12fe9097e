"""Players: features, and groups of features that count as one."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Features = Sequence[str | Mapping[str, Sequence[str]]]
"""Names of features; a mapping among them defines groups: name → its features."""


class Players:
    """Features and groups of features, each of which has one importance.

    A group is replaced, hidden and revealed as a whole. No feature belongs to two players, since
    the Shapley values share a gain among players that join one by one.

    ``members`` are the features of each player, ``features`` all of them in the order of the
    players. Raises ``ValueError`` if there is no feature, one is there twice, or a group is empty
    or has a feature's name.

    References
    ----------
    iPFI, Section 2: the feature set S; iSAGE, Definition 1, with groups as players.

    Examples
    --------
    >>> players = Players(["age", {"place": ["lat", "lon"]}])
    >>> players.names, players.features, players.starts.tolist()
    (('age', 'place'), ('age', 'lat', 'lon'), [0, 1, 3])
    """

    def __init__(self, features: Features) -> None:
        named = list(_named(features))
        self.members = tuple(members for _, members in named)
        self.features = check_features(self.of(range(len(named))))
        for name, members in named:
            if name in self.features and members != (name,):
                raise ValueError(f"the group {name!r} has the name of a feature: give it another")
        self.names = check_features([name for name, _ in named])

    @cached_property
    def starts(self) -> "NDArray[np.intp]":
        """Position of each player's first feature, and the total number: shape (players + 1,)."""
        import numpy as np  # noqa: PLC0415  the settings name players, and need no arrays

        return np.cumsum([0, *map(len, self.members)], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.names)

    def chosen(self, names: Collection[str]) -> tuple[str, ...]:
        """Return those of some names that are players, in order."""
        return tuple(name for name in self.names if name in names)

    def of(self, places: Iterable[int]) -> list[str]:
        """Return the features of some players, in order."""
        return [feature for place in places for feature in self.members[place]]


def check_features(features: Features) -> tuple[str, ...]:
    """Return the names, or raise ``ValueError`` for an empty list, a repeated name or a group."""
    names = []
    for name, members in _named(features):
        if members != (name,):
            raise ValueError(f"features has the group {name!r}, but must have single features only")
        names.append(name)
    if not names:
        raise ValueError("features is empty: name at least one")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"features names {min(repeated)!r} more than once")
    return tuple(names)


def _named(features: Features) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each feature or group with its features."""
    if isinstance(features, str | Mapping):
        raise ValueError(f"features is {features!r}, but must be a list of names")
    for item in features:
        if not isinstance(item, Mapping):
            yield item, (item,)
            continue
        for group, members in item.items():
            if isinstance(members, str):
                raise ValueError(f"the group {group!r} is {members!r}, but must be a list of names")
            if not members:
                raise ValueError(f"the group {group!r} is empty: name at least one feature")
            yield group, tuple(members)
