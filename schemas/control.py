"""Records of the topic ``control``: commands to a running pipeline."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fluxplain.schemas.record import BadRecordError, Record, Typed

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NewModel(Typed):
    """A model that takes over.

    Attributes
    ----------
    version
        The model's version in all records published from it; 1 to 200 printable characters.
    sha256
        Digest of the pickled model, 64 lower-case hexadecimal digits. It is also the name of the
        model's file in ``model.directory``.
    """

    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Control(Record):
    """A command for this partition's stream; it takes effect from its place in the log on.

    It is joined with the observations, so every replay applies it at the same place.

    Attributes
    ----------
    every
        From here on, explain one of this many observations, instead of ``explain.every``.
    model
        The model that predicts, is explained and learns from here on.
    withdraw
        Version of the announced model to withdraw. Partitions that wait for that model resume; a
        model already in use stays in use.
    """

    TOPIC: ClassVar[str] = "control"

    every: int | None = None
    model: NewModel | None = None
    withdraw: str | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields, which hold a command, and not two about a model."""
        control = cls.validated(fields)
        if control.every is None and control.model is None and control.withdraw is None:
            raise BadRecordError("there is none of every, model and withdraw in it")
        if control.model is not None and control.withdraw is not None:
            raise BadRecordError("it announces a model and withdraws one: send two messages")
        return control


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 digest in lower case; nothing else may become a path.

    Examples
    --------
    >>> is_sha256("0a" * 32), is_sha256("0A" * 32), is_sha256("../" * 21 + "x"), is_sha256("٣" * 64)
    (True, False, False, False)
    """
    return _SHA256.fullmatch(text) is not None
