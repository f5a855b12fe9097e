"""Records of the topic ``changes``: the model's reasoning changed."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import orjson

from fluxplain.schemas.cloudevents import event_headers
from fluxplain.schemas.explanation import Effect
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    Incarnation,
    Label,
    Record,
    Timestamp,
    Typed,
    Value,
)

Kind = Literal["drift", "cold-start", "gap", "schema", "model"]

Direction = Literal["rose", "fell"]


@dataclass(frozen=True, slots=True)
class Curve(Typed):
    """The iPDP of a feature or a pair at some time.

    Attributes
    ----------
    seq
        Offset of the newest observation in it.
    grid, effect, classes, second_grid
        As those of :class:`Explanation`.
    """

    seq: int
    grid: list[Value]
    effect: Effect
    classes: list[Label] | None = None
    second_grid: list[Value] | None = None


@dataclass(frozen=True, slots=True)
class Change(Record):
    """An event in the life of a stream's explanations, or of its model.

    Identity: (incarnation, stream, kind, feature, method, seq).

    Attributes
    ----------
    id
        12 hexadecimal digits, made of the identity: the same change has the same one again.
    stream
        Topic and partition of the observations; of a cold start or gap of the explainer or the
        drift role, of what that role reads.
    kind
        ``"drift"``: the explanation of a feature changed, or the loss. ``"cold-start"``: a model
        started without the beginning of its log, so what it learned before is gone. ``"gap"``: what
        an explanation needed was deleted before it was read, or lost on its way. ``"schema"``: a
        feature has had no value for long, or has one again, or there is something new that is not
        configured. ``"model"``: another model takes over, or was withdrawn before it did.
    seq
        Offset of the observation at which the change was seen, or in the role's own stream. Where
        messages were deleted before they were read: of the last one that is missing.
    previous_seq
        The seq of the change before this one, of the same stream, feature and method; None for
        the first. Of a gap: the last seq that was read, where there is one.
    ts
        Time of the newest observation in the explanation, as it states it.
    feature, method
        Whose explanation changed (a feature's or a group's), and which; None where it is about
        neither. Of the loss the method is ``"loss"``, and the feature None.
    signal
        What was watched: ``"increment"`` or ``"value"``.
    before, after
        Mean of the signal before and after the likeliest place of the change: where, of all since
        the change before, two means leave the least squares. ``before`` is None if there is too
        little before it.
    before_std_error, after_std_error
        Standard errors of these means, of numbers that do not depend on each other; None for the
        signal ``"value"``, whose numbers do.
    direction
        Whether ``after`` is above or below ``before``.
    window
        How many of the newest observations (``"value"``: explanations) ``after`` is about.
    after_seq
        About where the change was, and ``after`` begins. Places are tried at distances of an eighth
        of how long ago they are.
    delay_bound
        Observations within which the change was, for certain as far as the detector is: what ADWIN
        keeps of its window. Of other detectors, all since the change before.
    replay_seq
        The observations from here to ``seq`` show the change: as many before it as after it.
    value, std_error
        The explanation's value at that time, with the first of several smoothing rates; None for
        the loss.
    rank_before, rank_after, ranked
        The place of ``before`` and ``after`` among the means of the same signal that the detectors
        of this method then held of the other features, groups and pairs, 1 for the largest; and how
        many are ranked. None where the others had none yet, and for the loss.
    loss_before, loss_after
        Mean loss of the model over the observations that ``before`` and ``after`` are about; None
        without labels.
    curve_before, curve_after
        The feature's iPDP at ``after_seq`` or somewhat before, and the newest when the change was
        noticed; None where there is none, or where both do not fit into a message.
    incident
        Changes of several features, groups, pairs and methods of a stream, all within
        ``drift.incident_window`` observations, have the same one: the stream, ``@`` and the seq of
        the explanation that showed the first. None for the loss, which another role watches, and
        for what is no drift.
    detail
        A sentence for people.
    model_version
        Of the model at that time; None if it has none.
    incarnation
        That of the explanations, or predictions. A drift role that started without its past adds
        ``/`` and a number of its own.
    """

    TOPIC: ClassVar[str] = "changes"

    id: str
    stream: str
    kind: Kind
    seq: int
    previous_seq: int | None
    ts: Timestamp | None
    feature: str | None
    method: Watched | None
    detail: str
    signal: Literal["increment", "value"] | None = None
    before: float | None = None
    before_std_error: float | None = None
    after: float | None = None
    after_std_error: float | None = None
    direction: Direction | None = None
    window: int | None = None
    after_seq: int | None = None
    delay_bound: int | None = None
    replay_seq: int | None = None
    value: float | None = None
    std_error: float | None = None
    rank_before: int | None = None
    rank_after: int | None = None
    ranked: int | None = None
    loss_before: float | None = None
    loss_after: float | None = None
    curve_before: Curve | None = None
    curve_after: Curve | None = None
    incident: str | None = None
    model_version: str | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature; the stream where it is about none."""
        return self.feature or self.stream

    def message_headers(self) -> dict[str, bytes]:
        """Return those of a CloudEvent."""
        return event_headers(
            id_=self.id,
            source=self.stream,
            type_=f"fluxplain.change.{self.kind}",
            subject=self.feature,
            ts=self.ts,
        )

    @classmethod
    def notice(
        cls,
        *,
        kind: Literal["cold-start", "gap", "schema", "model"],
        stream: str,
        seq: int,
        detail: str,
        previous_seq: int | None = None,
        ts: Timestamp | None = None,
        feature: str | None = None,
        method: Watched | None = None,
        incarnation: Incarnation = FIRST_INCARNATION,
    ) -> Self:
        """Return an event that is no drift."""
        return cls(
            id=change_id(stream, kind, feature, method, seq, incarnation),
            stream=stream,
            kind=kind,
            seq=seq,
            previous_seq=previous_seq,
            ts=ts,
            feature=feature,
            method=method,
            detail=detail,
            incarnation=incarnation,
        )


def change_id(  # noqa: PLR0917  the parts of the identity, in its order
    stream: str,
    kind: Kind,
    feature: str | None,
    method: Watched | None,
    seq: int,
    incarnation: Incarnation = FIRST_INCARNATION,
) -> str:
    """Return the identity of a change as 12 hexadecimal digits.

    Examples
    --------
    >>> change_id("features-0", "drift", "age", "ipfi", 7)
    '09a346d8bb3e'
    """
    later = [incarnation] if incarnation != FIRST_INCARNATION else []
    identity = orjson.dumps([stream, kind, feature, method, seq, *later])
    return hashlib.sha256(identity).hexdigest()[:12]
