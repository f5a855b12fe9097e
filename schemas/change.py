"""Records of the topic ``changes``: changes of explanations, loss and distributions; notices."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, get_args

import orjson

from fluxplain.schemas.cloudevents import event_headers
from fluxplain.schemas.explanation import Effect, EffectErrors
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    Incarnation,
    Label,
    Record,
    Timestamp,
    Typed,
    Value,
)

ChangeKind = Literal["drift", "input", "output"]

NoticeKind = Literal["cold-start", "upgrade", "gap", "schema", "model", "autocorrelation"]

Kind = Literal[ChangeKind, NoticeKind]

Direction = Literal["rose", "fell"]

Status = Literal["noticed", "confirmed", "unclear", "transient", "reverted"]

Signal = Literal["increment", "value", "trend", "error", "mean", "spread", "share"]


@dataclass(frozen=True, slots=True)
class Curve(Typed):
    """The iPDP of a feature or a pair at one point of the stream.

    Attributes
    ----------
    seq
        Offset of the newest observation in the curve.
    grid, effect, classes, second_grid, effect_std_error
        As in :class:`Explanation`.
    """

    seq: int
    grid: list[Value]
    effect: Effect
    classes: list[Label] | None = None
    second_grid: list[Value] | None = None
    effect_std_error: EffectErrors | None = None


@dataclass(frozen=True, slots=True)
class Condition(Typed):
    """A condition on an observation: ``feature`` ``op`` ``value``, such as age > 40."""

    feature: str
    op: Literal["<=", ">", "==", "!="]
    value: Value


@dataclass(frozen=True, slots=True)
class Region(Typed):
    """The observations that carry a change.

    Attributes
    ----------
    conditions
        One to three conditions; the region meets all of them.
    coverage
        The region's share of the observations since the change.
    share
        The region's share of the change. It is above 1 if the others moved the other way.
    """

    conditions: list[Condition]
    coverage: float
    share: float


@dataclass(frozen=True, slots=True)
class Period(Typed):
    """A part of a stream: the offsets of its first and last observation."""

    begin: int
    end: int


CauseKind = Literal["data", "model", "both", "labels", "unclear"]


@dataclass(frozen=True, slots=True)
class Cause(Typed):
    """Why an explanation changed.

    The parts sum to the change of the mean distance by which the feature moves the output. They are
    estimated on some observations since the change and some from before it, with the current model
    and one from before the change. A part is a cause only if it has the direction of the change: if
    the importance grew, the feature must move the output more. Labels play no part: if their
    relation to the inputs changes, the model's part grows as it learns that.

    Attributes
    ----------
    kind
        ``"data"`` or ``"model"``: the larger part, when each gets half of the interaction.
        ``"both"`` if the smaller one is at least half of the larger one. ``"unclear"`` if the
        larger one in the direction of the change is less than two standard errors, except
        ``"labels"``: the model is the same, and how far the feature moves its output explains at
        most half of the change, so the outputs fit the labels differently than before; only for
        methods that need labels.
    data, data_std_error
        Mean on the new observations minus that on the older ones, both of the older model. A
        standard error is None if the observations depend on each other so much that it is unknown.
    model, model_std_error
        Mean of the current model minus that of the older one, both on the older observations.
    interaction, interaction_std_error
        The rest: the model changed in the region into which the observations moved.
    """

    kind: CauseKind
    data: float
    data_std_error: float | None
    model: float
    model_std_error: float | None
    interaction: float
    interaction_std_error: float | None


@dataclass(frozen=True, slots=True)
class Evidence(Typed):
    """An observation that is evidence of a change.

    Attributes
    ----------
    seq, id
        The observation's offset, and its id if known.
    increment
        The observation's increment, loss or error, if it is among those that moved the mean most;
        else None.
    feature, value, low, high
        A feature with an outlier, its value, and the range of all values before; the range is None
        for a new category. All are None without an outlier.
    """

    seq: int
    id: Id | None = None
    increment: float | None = None
    feature: str | None = None
    value: Value | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Change(Record):
    """A change of an explanation, of the loss or of a distribution, or a notice.

    Identity: (incarnation, stream, kind, feature, method, signal, seq). A change has two records
    with the same id: one when it is noticed, and one with its outcome.

    Attributes
    ----------
    id
        12 hexadecimal digits, derived from the identity: a repeated change has the same id.
    stream
        Topic and partition of the observations; for a cold start or gap of the explainer or the
        drift role, those of that role's input.
    kind
        ``"drift"``: the explanation of a feature changed, or the loss. ``"input"``: the
        distribution of a feature's values changed. ``"output"``: that of the predictions.
        ``"cold-start"``: a role started without the beginning of its log, so what it learned before
        is gone. ``"upgrade"``: the model resumes with other versions of the software, whose results
        may differ slightly; what it learned is kept. ``"gap"``: messages that an explanation needed
        were deleted before they were read, or lost on the way.
        ``"schema"``: a feature has had no value for long, has values again, or an unconfigured
        field appeared. ``"model"``: another model takes over, or its announcement was withdrawn.
        ``"autocorrelation"``: a feature's values resemble even its replacements, which come from
        old records, so importances may be too small; published once for each method.
    seq
        Offset of the observation at which the change was detected; for a notice about a role's
        input, the offset there. For deleted messages: offset of the last missing one.
    previous_seq
        The seq of the previous change of the same stream, feature, method and signal; None for the
        first. For a gap: the last seq that was read, if any.
    status
        ``"noticed"``, then one of the others, after ``drift.follow_up`` observations or with the
        sixteenth further change of the same series.
        ``"confirmed"``: at least half of the step lasted, on average over these observations, over
        their second half, and, within its error, over their last quarter. Two standard errors of
        the step are at most half of it; if they are more, the status is ``"unclear"``. Also
        confirmed is a step that was larger at first, if a quarter of it lasted and the level surely
        differs by half of ``before`` or more: as when a model makes errors until it has relearned.
        ``"transient"``: the step did not last. ``"reverted"``: a further change undid it. None for
        notices.
    status_seq
        Offset of the newest observation that ``status`` takes into account; None for notices.
    lasted
        Number of observations from ``after_seq`` on that the change lasted, if it is transient or
        reverted.
    learning
        Whether the model was still learning: its loss had fallen steadily since its start, and fell
        over the change, too.
    ts
        Time of the newest observation in the explanation, as the observation states it.
    feature, method
        The feature (or group, or pair) and the method whose explanation changed. For the loss, the
        method is ``"loss"`` and the feature None. A change of kind ``"input"`` has no method, one
        of kind ``"output"`` neither of the two. Notices have those that they are about.
    signal
        The watched signal: ``"increment"``, ``"value"`` or ``"trend"``, as in
        :class:`Explanation`. A change of the trend is published if its sign changes: the effect of
        the feature has reversed. Its mean is that of 1 for trends from 0.5 on, of -1 for those up
        to -0.5, and of 0. For the loss ``"increment"``; or ``"error"``, which is 1 where the
        predicted class is wrong, else 0, so that its means are shares of wrong predictions. For
        numbers as inputs or predictions: ``"mean"``, or ``"spread"``. The spread is the mean
        difference of successive values times 0.886, the standard deviation of independent normal
        numbers. For categories and classes: ``"share"``, the share of ``category``.
    category
        The category whose share in a feature's values moved most, or the class whose predicted
        probability moved most on average; None for other signals.
    before, after
        Mean of the signal before and after the change. The detector ``"glr"`` says which numbers it
        compared; for others, the position of the change is estimated by least squares: the split of
        everything since the previous change into two means with the smallest squared error.
        ``before`` is None if there are too few values before the change. In the first record,
        ``after`` would be too extreme, since its observations were selected for being extreme:
        ``"glr"`` corrects the mean for this selection bias. In the second record ``after`` is the
        mean of the observations after ``seq``; of a reverted change, up to the change that undid
        it.
    before_std_error, after_std_error
        Standard errors of these means. The detector ``"glr"`` allows for dependence between the
        numbers; the others assume independence. None for the signal ``"value"``.
    direction
        Whether ``after`` is above or below ``before``, as noticed.
    effect_size
        Size of the change, from 0 to 2: ``|after - before|``, divided by the sum of this method's
        absolute means over all that it explains, with the larger of ``before`` and ``after`` for
        this feature. For the trend: times ``value``, divided by the sum of the other means and
        ``value``. For the loss and errors: divided by the larger of the two means. For inputs and
        predictions: from 0 to 1, the total variation distance of two normal distributions with
        these means and the signal's standard deviation. Changes below ``drift.min_effect`` are not
        published. None if ``before`` is.
    window
        Number of observations (for ``"value"``: explanations) that ``after`` averages.
    after_seq
        Estimated offset of the change, where ``after`` begins. The older a change is, the coarser
        this is: candidates are spaced by an eighth of their age.
    delay_bound
        The change lies within this many latest observations: with the detector ``"glr"`` in more
        than nine of ten cases; with ADWIN, the length of the window that it keeps; with others, all
        since the previous change.
    replay_seq
        The observations from here to ``seq`` show the change, as many before it as after it.
    value, std_error
        The explanation's value when the change was detected, with the first smoothing rate; None
        for the loss.
    rank_before, rank_after, ranked
        The feature's rank before and after the change, 1 = most important; ``ranked`` is the number
        of features, groups and pairs compared. Ranks compare ``before`` and ``after`` with the
        means that the other detectors of this method hold at detection. None if the others have no
        mean yet, and for the loss.
    loss_before, loss_after
        The model's mean loss over the observations of ``before`` and of ``after``; None without
        labels.
    curve_before, curve_after
        The feature's iPDP at ``after_seq`` or shortly before it, and that of the observations from
        then on alone, up to ``status_seq``; None if there is none, or if both do not fit into a
        message.
    evidence
        The observations behind the change: up to three since ``after_seq`` that moved the mean
        most; for an explanation also up to five outliers from before and during the change.
    region
        The observations that carry the change, in the second record; None if all carry it alike,
        if it did not last, or if too few are known. Its conditions are about features that are
        explained individually; for the loss and the errors, about any feature.
    cause
        Why the explanation changed, in the second record; None for the trend, if too little is
        known, and without ``drift.causes``.
    returns_to
        In the second record: an earlier period in which the features had the same shares of all
        importance by this method as since the change. It ends at the change that ended the period
        and has only its newest observations. None without such a period, or if too little is known.
    incident
        Identifier that a stream's changes within ``drift.incident_window`` observations share,
        whatever their feature, group, pair and method: the stream, ``@`` and the seq of the
        explanation that showed the first. None for the loss, inputs and predictions, which another
        role watches, and for notices.
    detail
        The change or notice in one sentence.
    model_version
        Version of the model at that time; None if it has none.
    incarnation
        Incarnation of the explanations or predictions. A drift role that started cold adds ``/``
        and a number of its own.
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
    signal: Signal | None = None
    category: Value | None = None
    status: Status | None = None
    status_seq: int | None = None
    lasted: int | None = None
    learning: bool = False
    before: float | None = None
    before_std_error: float | None = None
    after: float | None = None
    after_std_error: float | None = None
    direction: Direction | None = None
    effect_size: float | None = None
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
    evidence: list[Evidence] | None = None
    region: Region | None = None
    cause: Cause | None = None
    returns_to: Period | None = None
    incident: str | None = None
    model_version: str | None = None
    incarnation: Incarnation = FIRST_INCARNATION

    def message_key(self) -> str:
        """Return the feature; the stream for a change without one."""
        return self.feature or self.stream

    def message_headers(self) -> dict[str, bytes]:
        """Return the headers of a CloudEvent."""
        return event_headers(
            id_=self.event_id,
            source=self.stream,
            type_=f"fluxplain.change.{self.kind}",
            subject=self.feature,
            ts=self.ts,
        )

    @property
    def is_follow_up(self) -> bool:
        """Whether this is a change's second record."""
        return self.status not in {None, "noticed"}

    @property
    def is_step(self) -> bool:
        """Whether this goes from one level to another, as far as is known."""
        return self.status not in {"transient", "reverted"}

    @property
    def lasts(self) -> bool:
        """Whether this is a second record that says that the step lasted."""
        return self.status in {"confirmed", "unclear"}

    @property
    def is_notice(self) -> bool:
        """Whether this is a notice about the stream or its model, and no change of a signal."""
        return self.kind not in get_args(ChangeKind)

    @property
    def is_of_distribution(self) -> bool:
        """Whether the distribution of a feature or of the predictions changed."""
        return self.kind in {"input", "output"}

    @property
    def is_of_loss(self) -> bool:
        """Whether the loss itself changed, not the share of wrong predictions."""
        return self.method == "loss" and self.signal != "error"

    @property
    def event_id(self) -> str:
        """Identity of the record: the id, for a second record with its status.

        Examples
        --------
        >>> notice = Change.notice(kind="gap", stream="features-0", seq=7, detail="")
        >>> notice.event_id == notice.id
        True
        """
        return f"{self.id}-{self.status}" if self.is_follow_up else self.id

    @classmethod
    def notice(
        cls,
        *,
        kind: NoticeKind,
        stream: str,
        seq: int,
        detail: str,
        previous_seq: int | None = None,
        ts: Timestamp | None = None,
        feature: str | None = None,
        method: Watched | None = None,
        incarnation: Incarnation = FIRST_INCARNATION,
    ) -> Self:
        """Return a notice: a change record that is no drift."""
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
    signal: Signal | None = None,
) -> str:
    """Return the identity of a change as 12 hexadecimal digits.

    Without a signal, it is that of a change of the increments, the value or the loss, or of a
    notice.

    Examples
    --------
    >>> change_id("features-0", "drift", "age", "ipfi", 7)
    '09a346d8bb3e'
    """
    later = [incarnation] if incarnation != FIRST_INCARNATION else []
    other = [] if signal in {None, "increment", "value"} else [signal]
    identity = orjson.dumps([stream, kind, feature, method, seq, *later, *other])
    return hashlib.sha256(identity).hexdigest()[:12]
