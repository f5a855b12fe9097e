"""Records of the topic ``control``: what changes while the pipeline runs."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fluxplain.schemas.record import BadRecordError, Record, Typed, load_object

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NewModel(Typed):
    """A model that takes over.

    Attributes
    ----------
    version
        Its name in all that is published of it; 1 to 200 printable characters.
    sha256
        Digest of the pickled model, 64 hexadecimal digits in lower case: its file in
        ``model.directory`` is called so.
    """

    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Control(Record):
    """Something that is other from here on, in the stream of this partition.

    It is joined with the observations, so it holds at the same place whenever they are read.

    Attributes
    ----------
    every
        One of so many observations is explained from here on, instead of ``explain.every``.
    model
        The model that is asked, and learns, from here on.
    withdraw
        Version of a model whose announcement is withdrawn. It frees the partitions that wait for
        that model; one that is in use stays in use.
    """

    TOPIC: ClassVar[str] = "control"

    every: int | None = None
    model: NewModel | None = None
    withdraw: str | None = None

    @classmethod
    def decode(cls, value: bytes | None) -> Self:
        """Return what is announced in a message.

        Raises
        ------
        BadRecordError
            If that is nothing.
        """
        return cls.of(load_object(value))

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return what these fields announce.

        Raises
        ------
        BadRecordError
            If that is nothing.
        """
        control = cls.validated(fields)
        if control.every is None and control.model is None and control.withdraw is None:
            raise BadRecordError("there is none of every, model and withdraw in it")
        if control.model is not None and control.withdraw is not None:
            raise BadRecordError("it announces a model and withdraws one: send two messages")
        return control


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 digest as it is written here: nothing else is a path.

    Examples
    --------
    >>> is_sha256("0a" * 32), is_sha256("0A" * 32), is_sha256("../" * 21 + "x"), is_sha256("٣" * 64)
    (True, False, False, False)
    """
    return _SHA256.fullmatch(text) is not None
