"""Records of the topic ``predictions``: what the model said of one observation."""

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
    """Labels of a stream that come later than their observations, until a record.

    Attributes
    ----------
    waiting
        Observations that wait for their label now.
    joined
        Labels that found their observation.
    missing
        Observations that waited in vain.
    repeated
        Labels that said again what was known.
    unknown
        Labels whose observation did not come, or had waited too long; they are dead letters.
    """

    waiting: int
    joined: int
    missing: int
    repeated: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Prediction(Record):
    """The model's answer before it learned the observation.

    An observation whose label comes later has two: one when it comes, without a label, and one when
    the label comes, by the model of then.

    Identity: (incarnation, stream, seq).

    Attributes
    ----------
    stream
        Topic and partition of the observation, ``topic-partition``.
    seq
        Offset of the observation in its partition; or of the label, if that came later.
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
        The label, if it is known.
    loss
        Loss of the prediction, with a label or where the model needs none.
    observation
        Where the label came later: the seq of the observation. Else None.
    first_prediction
        Where the label came later: what was predicted when the observation came.
    labels
        Of labels that come later; None until an observation has waited for one.
    missing
        Features that had no value. They were filled in; or the observation was passed over, and
        has no prediction. None if all had one.
    model_version
        Of the model that predicted; None if it has none.
    incarnation
        Which life of the stream this is: the same seq may come with other content in another one. A
        new one begins when the settings are replaced (``fluxplain settings replace``), and when the
        model starts without its past (a cold start). Within one, a record never changes.
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
    def is_right(self) -> bool | None:
        """Whether what was predicted when the observation came is its label.

        None without a label, and in regression.
        """
        if self.y is None or self.classes is None:
            return None
        first = self.prediction if self.observation is None else self.first_prediction
        return first == self.y
