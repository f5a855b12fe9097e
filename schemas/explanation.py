"""Records of the topic ``explanations``: importance and effect of a feature."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import Method
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Label,
    Record,
    Timestamp,
    Typed,
    Value,
)

Effect = list[float] | list[list[float]] | list[list[list[float]]]
"""A curve, or a curve per class; for a pair a surface, or a surface per class."""

EffectErrors = list[float | None] | list[list[float | None]]
"""A number for each point of a curve, or of a curve per class; None while too little is known."""


@dataclass(frozen=True, slots=True)
class Ice(Typed):
    """An ICE curve: the model's output for one observation as the feature varies.

    Attributes
    ----------
    seq
        Offset of the observation.
    grid, effect
        As in :class:`Explanation`.
    """

    seq: int
    grid: list[Value]
    effect: list[float] | list[list[float]]


@dataclass(frozen=True, slots=True)
class Interaction(Typed):
    """How strongly the explained feature interacts with another one, ``feature``, or a group.

    Attributes
    ----------
    value, std_error
        The variance of the output that both cause only together, in squared units of the output,
        and its standard error, as those of :class:`Explanation`.
    """

    feature: str
    value: float
    std_error: float | None


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """The current explanation of a feature, a group or a pair (iPDP) by one method.

    Identity: (incarnation, stream, feature, method, alpha, seq).

    Attributes
    ----------
    stream, feature, method
        The stream, the explained feature and the method. The feature may be a group of features, or
        a pair ``first|second``.
    seq
        Offset of the newest observation considered; it usually is in the estimate.
    previous_seq
        The seq of the previous explanation of the same stream, feature, method and alpha; None for
        the first.
    ts
        Time of the newest observation, as the observation states it.
    alpha
        Smoothing rate. With several rates, each has its own explanations of the same observations.
    updates
        Number of observations in the estimate.
    value
        iPFI, iSAGE: importance in units of the loss. iPDP: importance of the curve in units of
        the output. iSHAP: mean size of the contributions in units of the output. Interaction:
        variance of the output that the feature causes only together with others.
    std_error
        Standard error of the value, also for dependent observations: ``value`` ± 2 ``std_error``
        holds the expectation in about 95 % of cases. None while too little is known, for iSAGE with
        a single inner sample, and for a curve if the feature's recent range keeps moving by about
        its own width.
    seqs, increments
        The observations since the previous explanation and the contribution of each: loss
        difference (iPFI), marginal contribution (iSAGE), importance of its ICE curve (iPDP), size
        of its contribution to the output (iSHAP). They are the same for every alpha. Both are empty
        if nothing could be computed for 1,000 observations and for at least ``explain.emit_every``.
    signed
        iSHAP: the smoothed mean of the contributions with their signs; ``value`` is that of their
        sizes. It is positive if the feature raised the output on average. With two classes, this is
        the probability of the larger one, such as ``true`` or 1; with more, probability moved to
        the later ones in order. When a class appears between or after them, the mean mixes both
        orders for about 1 / alpha observations. While the inputs keep their distribution, its
        expectation is 0: it shows in which direction recent inputs push the output, compared with
        those just before, not the direction of the effect. None for other methods.
    trends
        iPDP of one feature: the trend of the ICE curve of each of the observations ``seqs``, its
        correlation with the mean of earlier ones, from -1 to 1. The sign changes if the effect
        reverses. It is positive if the output rises along the grid, or along the categories in the
        order of ``grid``, and negative if it falls. With more than two classes, it is positive if
        probability moves to the later ones. The trends are the same for every alpha. None for other
        methods and for pairs.
    values
        The feature's value in each of the observations ``seqs``; texts are cut to 64 characters.
        None for groups and pairs, and if ``explain.emit_every`` is above 256.
    ids
        The id of each of the observations ``seqs``, cut like ``values``. Only one feature of the
        stream carries them, since they are the same for all. None for others, and without ids.
    contrasts
        Contrasts with an older model, of some of the observations ``seqs``.
    loss
        Mean loss of the model over the labelled observations in ``seqs``; None without labels.
    grid, effect
        iPDP: the curve. With more than two classes, the effect has one curve per class. The points
        of a numeric feature come and go: there are up to four times ``grid_size``.
    effect_std_error
        iPDP of one feature: standard error of the effect at each point. None where too little is
        known, and for pairs.
    classes
        iPDP with more than two classes: the class of each curve.
    second_grid
        iPDP of a pair: the points of the second feature. Each curve of the effect is then a
        surface, with a row for each point of the first feature, in ``grid``.
    coverage
        Share of the observations with a value of the feature, from 0 to 1, smoothed with the first
        rate; for a group or a pair, with values of all of its features. Imputed values enter the
        model and the explanations like any other.
    skipped
        Number of the stream's observations so far that were not explained, to save time: with
        ``explain.every`` = k about k - 1 of k. With late labels, an observation and its label count
        separately.
    model_version
        Version of the explained model; None if it has none. When another model takes over, the
        estimates start from scratch; increments not yet published are in the first record.
    loss_changed_seq
        The seq since which the loss, or the wrong predictions, may have changed, by the latest
        alarm of their detector; None before the first one. For a while, a change of the explanation
        since then needs less evidence.
    ice
        iPDP, if configured: ICE curves of the last observations, the oldest first. They are the
        same for every alpha.
    interactions
        Of the method ``"interaction"``: up to five features and groups with which this one
        interacts most, the strongest first. ``value`` is the sum over all partners, also those not
        listed. None for other methods.
    incarnation
        Incarnation of the predictions. An explainer that started cold adds ``/`` and a number of
        its own.
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
    std_error: float | None
    seqs: list[int]
    increments: list[float]
    signed: float | None = None
    trends: list[float] | None = None
    values: list[Value | None] | None = None
    ids: list[Id | None] | None = None
    contrasts: list[Contrast] | None = None
    loss: float | None = None
    coverage: float = 1.0
    skipped: int = 0
    model_version: str | None = None
    loss_changed_seq: int | None = None
    grid: list[Value] | None = None
    effect: Effect | None = None
    classes: list[Label] | None = None
    second_grid: list[Value] | None = None
    ice: list[Ice] | None = None
    effect_std_error: EffectErrors | None = None
    interactions: list[Interaction] | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature."""
        return self.feature

    @property
    def first_seq(self) -> int:
        """Seq of the first observation since the previous explanation."""
        return self.seqs[0] if self.seqs else self.seq

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields: the lists must be as long as ``seqs``."""
        explanation = cls.validated(fields)
        n = len(explanation.seqs)
        for name in ("increments", "trends", "values", "ids"):
            column = getattr(explanation, name)
            if column is not None and len(column) != n:
                raise BadRecordError(f"{name} must be as long as seqs ({n})")
        return explanation
