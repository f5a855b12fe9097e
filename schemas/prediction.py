"""Records of the topic ``predictions``: the model's output for one observation."""

from dataclasses import dataclass
from typing import ClassVar

from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    Incarnation,
    Label,
    Record,
    Target,
    Timestamp,
    Typed,
)


@dataclass(frozen=True, slots=True)
class LabelCounts(Typed):
    """Counts of a stream's late labels so far.

    Attributes
    ----------
    waiting
        Observations that are waiting for their label.
    joined
        Labels joined with their observation.
    missing
        Observations whose label never arrived in time.
    repeated
        Labels that repeated a known label.
    unknown
        Labels whose observation never arrived, or no longer waits; they are dead letters.
    """

    waiting: int
    joined: int
    missing: int
    repeated: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Prediction(Record):
    """The model's prediction for an observation, before the model learns from it.

    An observation with a late label has two: one when it arrives, without a label, and one when the
    label arrives, by the model of that time.

    Identity: (incarnation, stream, seq).

    Attributes
    ----------
    stream
        Topic and partition of the observation, ``topic-partition``.
    seq
        Offset of the observation in its partition; for a late label, the label's offset.
    previous_seq
        The seq of the stream's previous prediction; None for the first. Messages between the two
        went to ``dead-letters``, or were never in the log.
    id, ts
        As in the observation.
    prediction
        The predicted class or number; None if the model knows no class yet.
    classes, probabilities
        The classes that the model knows and their probabilities, in the same order; None for
        regression.
    y
        The label, if it is known.
    loss
        Loss of the prediction; None without a label, unless the model needs none.
    observation
        With a late label: the seq of the observation. Otherwise None.
    first_prediction
        With a late label: the prediction made when the observation arrived.
    labels
        Counts of the stream's late labels; None until an observation has waited for one.
    missing
        Features without a value; None if all had one. Their values were imputed, or the observation
        was skipped and has no prediction.
    model_version
        Version of the model that predicted; None if it has none.
    incarnation
        The stream's incarnation. In another one, the same seq may have other content; within one, a
        record never changes. A new one begins when the settings are replaced (``fluxplain settings
        replace``), when the model starts without its state (a cold start), and when it resumes with
        versions that give other bits (``fluxplain checkpoints adopt``).
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
    observation: int | None = None
    first_prediction: Target | None = None
    labels: LabelCounts | None = None
    missing: list[str] | None = None
    model_version: str | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    @property
    def error(self) -> float:
        """1 if the prediction differs from the label, else 0; the loss judges the same one."""
        return float(self.prediction != self.y)

    @property
    def is_right(self) -> bool | None:
        """Whether the prediction made when the observation arrived equals its label.

        None without a label, and in regression.
        """
        if self.y is None or self.classes is None:
            return None
        first = self.prediction if self.observation is None else self.first_prediction
        return first == self.y
