"""Validated input of the model stage: observations, labels and control records."""

from collections.abc import Sequence
from dataclasses import dataclass

from fluxplain.evaluate import Value
from fluxplain.schemas import Control, LateLabel
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Target, Timestamp
from fluxplain.stages.stage import Message


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """An observation with a prediction that waits for its label.

    ``message`` becomes a dead letter if no label comes; None if it is not kept.
    """

    seq: int
    x: dict[str, Value]
    ts: Timestamp | None
    prediction: Target | None
    message: Message | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A validated observation, or one whose label has arrived (``unlabelled`` is what waited).

    ``seq`` and ``message`` are the label's in the second case. ``missing`` are features without a
    value, ``others`` unconfigured fields; with ``is_skipped`` it gets no prediction.
    """

    seq: int
    x: dict[str, Value]
    y: Target | None
    id: Id | None
    ts: Timestamp | None
    message: Message
    missing: Sequence[str] = ()
    others: Sequence[str] = ()
    unlabelled: Unlabelled | None = None
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """A validated control record; it takes effect from this offset on."""

    control: Control
    message: Message


@dataclass(frozen=True, slots=True)
class Unusable:
    """A message that failed validation, and the reason."""

    reason: str
    message: Message


@dataclass(frozen=True, slots=True)
class Labelled:
    """A validated late label."""

    label: LateLabel
    message: Message
