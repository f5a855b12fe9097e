"""What the model stage takes: observations and labels that passed validation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fluxplain.evaluate import Value
from fluxplain.schemas import Control, LateLabel
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Target, Timestamp
from fluxplain.stages.base import Message


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a stream was.

    Attributes
    ----------
    observed
        Observations until then.
    time
        Largest timestamp of a message until then, in milliseconds; 0 without any.
    """

    observed: int = 0
    time: int = 0


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """An observation that was predicted, and waits for its label.

    Attributes
    ----------
    seq, x, ts
        As in its sample.
    prediction
        What was predicted; None if the model had nothing to say.
    since, message
        When it came, and what becomes a dead letter if no label does; None if nothing does.
    """

    seq: int
    x: dict[str, Value]
    ts: Timestamp | None
    prediction: Target | None
    since: Moment
    message: Message | None

    @property
    def values(self) -> Iterable[Value | None]:
        """Its values; texts may be long."""
        return (self.ts, self.prediction, *self.x.values())


@dataclass(frozen=True, slots=True)
class Sample:
    """An observation that passed validation; or one whose label has come.

    Attributes
    ----------
    seq, message
        The observation's, or the label's.
    x, y, id, ts
        As in the records.
    missing
        Features that have no value.
    others
        Its unconfigured fields.
    unlabelled
        What waited for the label; None for an observation that comes.
    is_skipped
        Whether it has no prediction, since a feature has no value.
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
class Announced:
    """What is other from here on, and passed validation."""

    control: Control
    message: Message


@dataclass(frozen=True, slots=True)
class Unusable:
    """A message that did not pass, and why."""

    reason: str
    message: Message


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label that comes later, and passed validation."""

    label: LateLabel
    message: Message
