"""Records of the topic ``predictions``: what the model said of one observation."""

from dataclasses import dataclass
from typing import ClassVar

from schemas.observation import Id
from schemas.record import Label, Record, Target, Timestamp


@dataclass(frozen=True, slots=True)
class Prediction(Record):
    """The model's answer before it learned the observation.

    Identity: (stream, seq).

    Attributes
    ----------
    stream
        Topic and partition of the observation, ``topic-partition``.
    seq
        Offset of the observation in its partition.
    previous_seq
        The seq of the prediction before this one in the stream. What lies between went to
        ``dead-letters`` (or was never in the log). None for the first.
    id, ts
        As in the observation.
    prediction
        The predicted class or number; None if the model knows no class yet.
    classes, probabilities
        The classes that the model knows and their probabilities, in the same order; None for
        regression.
    y
        The label, if the observation had one.
    loss
        Loss of the prediction, with a label.
    """

    TOPIC: ClassVar[str] = "predictions"

    stream: str
    seq: int
    previous_seq: int | None
    id: Id | None
    ts: Timestamp | None
    prediction: Target | None
    classes: list[Label] | None
    probabilities: list[float] | None
    y: Target | None
    loss: float | None
