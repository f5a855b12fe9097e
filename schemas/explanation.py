"""Records of the topic ``explanations``: what a feature means to the model now."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fluxplain.schemas.methods import Method
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Label,
    Record,
    Timestamp,
    Typed,
    Value,
    load_object,
)

Effect = list[float] | list[list[float]] | list[list[list[float]]]
"""A curve; one a class; or of a pair a surface, or one a class."""


@dataclass(frozen=True, slots=True)
class Ice(Typed):
    """How the output on one observation moves with the feature.

    Attributes
    ----------
    seq
        Offset of the observation.
    grid, effect
        As those of :class:`Explanation`.
    """

    seq: int
    grid: list[Value]
    effect: list[float] | list[list[float]]


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """The current iPFI, iSAGE or iPDP of a feature, a group (iPFI, iSAGE) or a pair (iPDP).

    Identity: (incarnation, stream, feature, method, alpha, seq).

    Attributes
    ----------
    stream, feature, method
        What is explained, and how. The feature may be a group of features, or a pair
        ``first|second``.
    seq
        Offset of the newest observation that was looked at, and mostly is in the estimate.
    previous_seq
        The seq of the explanation before this one, of the same stream, feature, method and alpha;
        None for the first.
    ts
        Time of the newest observation, as it states it.
    alpha
        Smoothing. With several rates each has explanations of its own, of the same observations.
    updates
        How many observations are in the estimate.
    value
        iPFI, iSAGE: importance in units of the loss. iPDP: importance of the curve in units of
        the output.
    std_error
        Standard error of the value.
    seqs, increments
        Each observation since the previous explanation and what it contributed: loss difference
        (iPFI), marginal contribution (iSAGE), importance of its ICE curve (iPDP). They are the
        same with every alpha. Where nothing could be computed for 1,000 observations, and for as
        many as are in each record, there is an explanation without any.
    loss
        Mean loss of the model over the labelled ones of these observations; None without.
    grid, effect
        iPDP: the curve. With more than two classes the effect is one curve a class.
    classes
        iPDP with more than two classes: which class each curve of the effect is of.
    second_grid
        iPDP of a pair: the points of the second feature. Each curve of the effect is then a
        surface, with a row for each point of the first, in ``grid``.
    coverage
        Share of the observations that had a value of the feature, from 0 to 1, smoothed by the
        first of the rates; of a group or a pair, of all of its features. Where a value was filled
        in, the model and the explanations took it as any other.
    skipped
        Observations of the stream until then that were not explained, to save time: with
        ``explain.every`` = k about k - 1 of k. Where labels come later, observations and labels are
        counted each.
    model_version
        Of the model that is explained; None if it has none. Where a model takes over from another,
        estimates begin anew; increments that were not published then are in the first record.
    ice
        iPDP, if configured: the curves of the last observations, the oldest first. They are the
        same with every alpha.
    incarnation
        That of the predictions. An explainer that started without its past adds ``/`` and a number
        of its own.
    """

    TOPIC: ClassVar[str] = "explanations"

    stream: str
    feature: str
    method: Method
    seq: int
    previous_seq: int | None
    ts: Timestamp | None
    alpha: float
    updates: int
    value: float
    std_error: float
    seqs: list[int]
    increments: list[float]
    loss: float | None = None
    coverage: float = 1.0
    skipped: int = 0
    model_version: str | None = None
    grid: list[Value] | None = None
    effect: Effect | None = None
    classes: list[Label] | None = None
    second_grid: list[Value] | None = None
    ice: list[Ice] | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature."""
        return self.feature

    @property
    def first_seq(self) -> int:
        """The first observation since the previous explanation that is in this one."""
        return self.seqs[0] if self.seqs else self.seq

    @classmethod
    def decode(cls, value: bytes | None) -> Self:
        """Return the explanation in a message.

        Raises
        ------
        BadRecordError
            If it is no such record, or has not one increment for each of its seqs.
        """
        return cls.of(load_object(value))

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the explanation of these fields.

        Raises
        ------
        BadRecordError
            If it is none, or has not one increment for each of its seqs.
        """
        explanation = cls.validated(fields)
        if len(explanation.seqs) != len(explanation.increments):
            raise BadRecordError(f"increments must be as long as seqs ({len(explanation.seqs)})")
        return explanation
