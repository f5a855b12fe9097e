"""Records of the topic ``control``: what changes while the pipeline runs."""

from dataclasses import dataclass
from typing import ClassVar

from schemas.record import Record


@dataclass(frozen=True, slots=True)
class Control(Record):
    """Something that is other from here on, in the stream of this partition.

    It is joined with the observations, so it holds at the same place whenever they are read.

    Attributes
    ----------
    every
        One of so many observations is explained from here on, instead of ``explain.every``.
    """

    TOPIC: ClassVar[str] = "control"

    every: int
