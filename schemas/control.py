"""Records of the topic ``control``: what changes while the pipeline runs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from schemas.record import BadRecordError, Record, Typed, load_object


@dataclass(frozen=True, slots=True)
class NewModel(Typed):
    """A model that takes over.

    Attributes
    ----------
    version
        Its name, which is told in all that is published of it.
    sha256
        Digest of the pickled model, in hexadecimal: its file in ``model.directory`` is called so.
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
    """

    TOPIC: ClassVar[str] = "control"

    every: int | None = None
    model: NewModel | None = None

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
        if control.every is None and control.model is None:
            raise BadRecordError("there is neither every nor model in it")
        return control
