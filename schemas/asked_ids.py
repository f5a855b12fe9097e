"""Ids of observations that are asked for, in the settings or on the command line."""

from collections.abc import Iterable

import orjson

from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Number


class AskedIds:
    """Ids that are asked for. A text stands for the number that it is in JSON, too.

    Numbers are compared by value, so that 40 and 40.0 are the same id.

    Examples
    --------
    >>> asked = AskedIds(["40", 1e16])
    >>> 40.0 in asked, "40" in asked, 10**16 in asked, "40.0" in asked, 41 in asked
    (True, True, True, False, False)
    """

    def __init__(self, ids: Iterable[Id]) -> None:
        ids = [*ids]
        self._texts = frozenset(map(_text, ids))
        self._numbers = frozenset(number for each in ids for number in _numbers(each))

    def __contains__(self, id_: Id | None) -> bool:
        return id_ in (self._texts if isinstance(id_, str) else self._numbers)


def _text(id_: Id) -> str:
    is_whole = isinstance(id_, float) and id_.is_integer()
    return str(int(id_) if is_whole else id_)


def _numbers(id_: Id) -> list[Number]:
    """Return the number that an id is or stands for, if any."""
    if not isinstance(id_, str):
        return [id_]
    try:
        value = orjson.loads(id_)
    except orjson.JSONDecodeError:
        return []
    return [value] if type(value) in {int, float} else []
