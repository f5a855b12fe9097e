"""Records of the topic ``changes``: the model's reasoning changed."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from schemas.record import Record, Timestamp

Watched = Literal["ipfi", "isage", "ipdp", "loss"]


@dataclass(frozen=True, slots=True)
class Change(Record):
    """An event in the life of a stream's explanations, or of its model.

    Identity: (stream, kind, feature, method, seq).

    Attributes
    ----------
    stream
        Topic and partition of the observations; of a cold start or gap of the explainer or the
        drift role, of what that role reads.
    kind
        ``"drift"``: the explanation of a feature changed, or the loss. ``"cold-start"``: a model
        started without the beginning of its log, so what it learned before is gone. ``"gap"``: what
        an explanation needed was deleted before it was read.
    seq
        Offset of the observation at which the change was seen, or in the role's own stream.
    previous_seq
        The seq of the change before this one, of the same stream, feature and method; None for
        the first. Of a gap: the last seq that was read.
    ts
        Time of the newest observation in the explanation, as it states it.
    feature, method
        Whose explanation changed (a feature's or a group's), and which; None where it is about
        neither. Of the loss the method is ``"loss"``, and the feature None.
    signal
        What was watched: ``"increment"`` or ``"value"``.
    before, after
        Mean of the signal in what ADWIN dropped from its window, and in what it kept. Of another
        detector: in the last 30 numbers, and in those before them since it began or last alarmed;
        ``before`` is None if there were none.
    window
        How many of the newest observations (``"value"``: explanations) ``after`` is about. With
        ADWIN the change lies about that far back.
    value, std_error
        The explanation's value at that time; None for the loss.
    detail
        A sentence for people.
    """

    TOPIC: ClassVar[str] = "changes"

    stream: str
    kind: Literal["drift", "cold-start", "gap"]
    seq: int
    previous_seq: int | None
    ts: Timestamp | None
    feature: str | None
    method: Watched | None
    signal: Literal["increment", "value"] | None
    before: float | None
    after: float | None
    window: int | None
    value: float | None
    std_error: float | None
    detail: str

    def message_key(self) -> str:
        """Return the feature; the stream where it is about none."""
        return self.feature or self.stream

    @classmethod
    def notice(
        cls,
        *,
        kind: Literal["cold-start", "gap"],
        stream: str,
        seq: int,
        detail: str,
        previous_seq: int | None = None,
        ts: Timestamp | None = None,
        feature: str | None = None,
        method: Watched | None = None,
    ) -> "Change":
        """Return an event that is no drift."""
        return cls(
            stream=stream,
            kind=kind,
            seq=seq,
            previous_seq=previous_seq,
            ts=ts,
            feature=feature,
            method=method,
            signal=None,
            before=None,
            after=None,
            window=None,
            value=None,
            std_error=None,
            detail=detail,
        )
