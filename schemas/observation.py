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
        """Return the record of these fields; others are ignored.

        Examples
        --------
        >>> Observation.decode(b'{"x": {"age": 61}, "y": 1}')
        Observation(x={'age': 61}, y=1, id=None, ts=None)
        """
        if "x" not in fields:
            others = (name[:MOST_SHOWN] for name in fields if name not in {"y", "id", "ts"})
            names = ", ".join(islice(others, MOST_NAMES))
            found = f"; the message has {names}: put the features into x" if names else ""
            raise BadRecordError(f"no x: an observation needs an object of feature values{found}")
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


def optional(fields: dict[str, Any], name: str, kind: Any) -> Any:
    """Return the single value of a field, None without one; raise if it is of another type."""
    value = fields.get(name)
    if value is not None and not isinstance(value, kind):
        raise BadRecordError(f"{name} must be a single value, not {describe(value)}")
    # a boolean is an int in Python, but neither an id nor a time
    if isinstance(value, bool) and bool not in get_args(kind):
        raise BadRecordError(f"{name} must be a number or a string, not {describe(value)}")
    return value
