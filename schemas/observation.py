"""Records of the topic ``features``: one observation each, written by the user's producers."""

from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Self, get_args

from fluxplain.schemas.record import (
    BadRecordError,
    Number,
    Record,
    Target,
    Timestamp,
    Value,
    describe,
)

Id = Number | str

MOST_NAMES, MOST_SHOWN = 5, 60
"""Fields of a message without ``x`` that its reason names, and the characters of each."""

MOST_FLAW = 300
"""Characters of the reason for which a message says itself that it is no observation."""

FIELDS = frozenset({"x", "y", "id", "ts"})
"""Fields of an observation; those of a late label are among them."""


@dataclass(frozen=True, slots=True)
class Observation(Record):
    """One observation.

    Attributes
    ----------
    x
        Feature → value; a missing value is null, or has no entry.
    y
        The label; None if it is not known yet.
    id
        The user's identifier of the observation; passed through. A late label refers to it.
    ts
        Time of the observation, in the user's format; passed through.
    """

    TOPIC: ClassVar[str] = "features"

    x: dict[str, Value | None]
    y: Target | None = None
    id: Id | None = None
    ts: Timestamp | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields; others are ignored, but see :func:`check_case`.

        Examples
        --------
        >>> Observation.decode(b'{"x": {"age": 61}, "y": 1}')
        Observation(x={'age': 61}, y=1, id=None, ts=None)
        """
        check_case(fields)
        if "x" not in fields:
            if isinstance(fields.get("flaw"), str):  # of a row that a file lacks cells of
                raise BadRecordError(fields["flaw"][:MOST_FLAW])
            hint = _in_place_of_x(fields)
            raise BadRecordError(f"no x: an observation needs an object of feature values{hint}")
        x = fields["x"]
        if not isinstance(x, dict):
            raise BadRecordError(f"x must be an object of feature values, not {describe(x)}")
        for feature, v in x.items():
            if not isinstance(v, Value | None):
                raise BadRecordError(f"x.{feature} must be a single value, not {describe(v)}")
        return cls(
            x=x,
            y=optional(fields, "y", Target),
            id=optional(fields, "id", Id),
            ts=optional(fields, "ts", Timestamp),
        )


def _in_place_of_x(fields: dict[str, Any]) -> str:
    """Return a hint at the fields of a message that may have been meant for ``x``."""
    others = [name for name in fields if name not in FIELDS]
    objects = (name for name in others if isinstance(fields[name], dict))
    meant = next(objects, None)
    if meant is not None:
        return f"; is it {meant[:MOST_SHOWN]!r}?"
    names = ", ".join(name[:MOST_SHOWN] for name in islice(others, MOST_NAMES))
    return f"; the message has {names}: put the features into x" if names else ""


def check_case(fields: dict[str, Any]) -> None:
    """Raise ``BadRecordError`` for a ``Y`` in the place of ``y``, or an object ``X`` in that of x.

    Otherwise the ``Y`` would be ignored, and its observation would wait for a label in vain. Fields
    such as ``ID`` and ``TS`` are ignored as all others are.

    Examples
    --------
    >>> check_case({"x": {"age": 61}, "Y": True})
    Traceback (most recent call last):
        ...
    fluxplain.schemas.record.BadRecordError: no y, but 'Y': names of fields are in lower case
    """
    wrong = ""
    if "x" not in fields:
        wrong = "X" if isinstance(fields.get("X"), dict) else ""
    elif fields.get("y") is None and fields.get("Y") is not None:
        wrong = "Y"
    if wrong:
        raise BadRecordError(
            f"no {wrong.lower()}, but {wrong!r}: names of fields are in lower case"
        )


def optional(fields: dict[str, Any], name: str, kind: Any) -> Any:
    """Return the single value of a field, None without one; raise if it is of another type."""
    value = fields.get(name)
    if value is not None and not isinstance(value, kind):
        raise BadRecordError(f"{name} must be a single value, not {describe(value)}")
    # a boolean is an int in Python, but neither an id nor a time
    if isinstance(value, bool) and bool not in get_args(kind):
        raise BadRecordError(f"{name} must be a number or a string, not {describe(value)}")
    return value
