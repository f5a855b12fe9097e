"""Records of the topic ``changes``: the model's reasoning changed."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from schemas.explanation import Method
from schemas.record import Record, Timestamp


@dataclass(frozen=True, slots=True)
class Change(Record):
    """An event in the life of a stream's explanations.

    Identity: (stream, kind, feature, method, seq).

    Attributes
    ----------
    stream
        Topic and partition of the observations; of a cold start or gap of the explainer or the
        drift role, of what that role reads.
    kind
        ``"drift"``: the explanation of a feature changed. ``"cold-start"``: a model started
        without the beginning of its log, so what it learned before is gone. ``"gap"``: what an
        explanation needed was deleted before it was read.
    seq
        Offset of the observation at which the change was seen, or in the role's own stream.
    previous_seq
        The seq of the change before this one, of the same stream, feature and method; None for
        the first. Of a gap: the last seq that was read.
    ts
        Time of the newest observation in the explanation, as it states it.
    feature, method
        Whose explanation changed (a feature's or a group's), and which; None where it is about
        neither.
    signal
        What was watched: ``"increment"`` or ``"value"``.
    before, after
        Mean of the signal in what ADWIN dropped from its window, and in what it kept.
    window
        How many of the newest observations (``"value"``: explanations) it kept: the change lies
        about that far back.
    value, std_error
        The explanation's value at that time.
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
    method: Method | None
    signal: Literal["increment", "value"] | None
    before: float | None
    after: float | None
    window: int | None
    value: float | None
    std_error: float | None
    detail: str

    def message_key(self) -> str:
        """Return the feature; the stream for a cold start."""
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
        method: Method | None = None,
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
