"""What becomes of a change: whether its step lasts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from fluxplain.drift.windows import Part
from fluxplain.schemas import Change, Incarnation
from fluxplain.schemas.change import Signal, Status
from fluxplain.schemas.methods import Watched

LEFT = 0.5
"""A change is confirmed if at least this share of its step is left."""

OVERSHOT = 0.25
"""A change that overshot is confirmed if at least this share of its step is left, and its level is
not that of before: a model that relearns makes the step larger at first than in the end."""

PARTS = 4
"""The observations after a change are divided into so many parts."""

MOST_OPEN = 16
"""Largest number of changes of a series whose outcomes are not known; one more ends the oldest."""

LEAST_REVERSED = 0.5
"""A reversed trend has more than this share of its size before, and the other way round: a curve
that became another one may have a weak correlation with the former one, of any sign."""

SURE = 2.0
"""A reversed trend is at least so many standard errors from 0, before and after."""

Series = tuple[str | None, Watched | None, Signal | None]
"""What a change is about: feature, method and signal."""


def series_of(change: Change) -> Series:
    """Return what a change is about."""
    return change.feature, change.method, change.signal


def effect_of(change: Change, others: float = 0.0, spread: float | None = None) -> float | None:
    """Return the difference of the means as a share of the importance of all features.

    Parameters
    ----------
    others
        Sum of the absolute means of the other features.
    spread
        Standard deviation of the numbers. If given, the effect is the total variation distance of
        two normal distributions with it and these means, from 0 to 1.

    Returns
    -------
    effect
        From 0 to 2; None if nothing is known of before.
    """
    if change.before is None or change.after is None:
        return None
    if change.signal == "trend":  # a correlation, of an effect of this size
        size = abs(change.value or 0.0)
        return abs(change.after - change.before) * size / (others + size) if size else 0.0
    if spread is not None:
        distance = abs(change.after - change.before)
        return math.erf(distance / spread / math.sqrt(8.0)) if spread else float(distance > 0.0)
    all_of_them = others + max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / all_of_them if all_of_them else 0.0


def is_reversal(change: Change) -> bool:
    """Return whether a mean has changed its sign, and is clearly not 0 on either side.

    Examples
    --------
    >>> step = Change.notice(kind="drift", stream="features-0", seq=7, detail="")
    >>> [is_reversal(replace(step, before=1.0, after=after)) for after in (-0.9, 0.9, -0.1)]
    [True, False, False]
    """
    before, after = change.before or 0.0, change.after or 0.0
    errors = change.before_std_error or 0.0, change.after_std_error or 0.0
    is_clear = abs(before) > SURE * errors[0] and abs(after) > SURE * errors[1]
    one, other = sorted((abs(before), abs(after)))
    return before * after < 0.0 and is_clear and one > LEAST_REVERSED * other


def is_clear(change: Change) -> bool:
    """Return whether two standard errors of a step leave :data:`LEFT` of it; True if unknown.

    A step of a trend is clear if it is a reversal.

    Examples
    --------
    >>> step = Change.notice(kind="drift", stream="features-0", seq=7, detail="")
    >>> step = replace(step, before=1.0, before_std_error=0.03, after=1.2, after_std_error=0.03)
    >>> is_clear(step), is_clear(replace(step, after=1.1))
    (True, False)
    """
    errors = change.before_std_error, change.after_std_error
    if change.signal == "trend":
        return is_reversal(change)
    if change.before is None or change.after is None or None in errors:
        return True
    step, error = abs(change.after - change.before), math.hypot(*filter(None, errors))
    return 2.0 * error <= (1.0 - LEFT) * step


def std_error_of(part: Part | None, inflation: float | None) -> float | None:
    """Return the standard error of a mean; None if unknown.

    ``inflation`` is the ratio of its variance to that of a mean of independent numbers.
    """
    if part is None or part.std_error is None or inflation is None:
        return None
    return part.std_error * math.sqrt(inflation)


def _spread(before: Part | None, after: Part) -> float:
    """Return the standard deviation of numbers around the mean of their part."""
    parts = [part for part in (before, after) if part is not None]
    return math.sqrt(sum(part.squares / part.n for part in parts) / len(parts))


class Shift(NamedTuple):
    """A signal before and after a change.

    Attributes
    ----------
    before, after
        The numbers before (None without any) and after the likeliest position of the change; the
        mean of those after it is corrected for having been selected.
    inflation
        Ratio of the variance of their means to that of means of independent numbers; None if
        unknown.
    after_seq, replay_seq
        First seq of ``after``, and of twice as many numbers.
    earliest_seq
        Lower bound of the change: of the detector ``"glr"`` in nine of ten cases; the first
        number in ADWIN's shrunk window; for others, the first one after the previous change.
    loss_before, loss_after
        Mean loss of these observations; None without any.
    learning
        Whether the model was still learning, as in :class:`~fluxplain.schemas.Change`.
    """

    before: Part | None
    after: Part
    inflation: float | None
    after_seq: int
    replay_seq: int
    earliest_seq: int
    loss_before: float | None
    loss_after: float | None
    learning: bool

    @property
    def begins_seq(self) -> int:
        """From where on the signal may have changed: at most twice as long ago as is likeliest."""
        return max(self.earliest_seq, self.replay_seq)

    @property
    def rises(self) -> bool:
        """Whether the mean rose."""
        return self.before is not None and self.after.mean > self.before.mean

    @property
    def spread(self) -> float:
        """Standard deviation of the numbers, before and after."""
        return _spread(self.before, self.after)

    def undoes(self, earlier: "Shift") -> bool:
        """Return whether less is left of an earlier shift than what confirms it."""
        if earlier.before is None:
            return False
        step = earlier.after.mean - earlier.before.mean
        return (self.after.mean - earlier.before.mean) / step < LEFT if step else False


class Outcome(NamedTuple):
    """A signal after a change was noticed.

    Attributes
    ----------
    seq, after_seq, status_seq
        Seq of the change, where it began, and of the newest number.
    level, late, newest
        The numbers after ``seq``, and those of the second half and of the last quarter of the
        observations; None without any.
    interim
        The numbers from the change to a further one that undid it; None without one.
    lasted
        Number of observations from the beginning of the change to that further one, or to where the
        level most likely changed back.
    inflation
        As in :func:`std_error_of`.
    before
        The numbers before the change.
    """

    seq: int
    after_seq: int
    status_seq: int
    level: Part
    late: Part | None
    newest: Part | None
    interim: Part | None
    lasted: int
    inflation: float | None
    before: Part | None = None

    def completed(self, change: Change, others: float) -> Change:
        """Return the second record of a change; ``others`` as in :func:`effect_of`."""
        status = self._status(change)
        if status in {"transient", "reverted"} and self._overshot(change):
            status = "confirmed"
        level = self.interim if status == "reverted" and self.interim else self.level
        change = replace(
            change,
            status=status,
            status_seq=self.status_seq,
            lasted=self.lasted if status in {"transient", "reverted"} else None,
            after=level.mean,
            after_std_error=std_error_of(level, self.inflation),
            window=level.n,
        )
        if status == "confirmed" and not is_clear(change):
            change = replace(change, status="unclear")
        spread = _spread(self.before, level) if change.is_of_distribution else None
        return replace(change, effect_size=effect_of(change, others, spread))

    def _status(self, change: Change) -> Status:
        before = change.before or 0.0
        step = (change.after or 0.0) - before
        # of a trend as much as changes its sign
        least = max(LEFT, -before / step) if change.signal == "trend" and step else LEFT

        def is_left(part: Part | None, error: float = 0.0) -> bool:
            if part is None or not step:
                return True
            return (part.mean - before) / step + error / abs(step) >= least

        # a quarter has few numbers: it counts only beyond its error
        error = std_error_of(self.newest, self.inflation) or 0.0
        lasts = is_left(self.late) and is_left(self.newest, error)
        if lasts and is_left(self.level):
            return "confirmed"
        return "transient" if self.interim is None or lasts else "reverted"

    def _overshot(self, change: Change) -> bool:
        """Return whether a step was larger at first, and the level still surely another one.

        By at least half of what it was, so that the end of a false alarm is none.
        """
        before, late, newest = change.before, self.late, self.newest
        error = std_error_of(late, self.inflation)
        if before is None or late is None or error is None or change.before_std_error is None:
            return False
        if change.signal == "trend" or change.after is None:
            return False
        left, step = late.mean - before, change.after - before
        is_much = left * step > 0.0 and abs(left) >= max(OVERSHOT * abs(step), LEFT * abs(before))
        end = replace(change, after=late.mean, after_std_error=error)
        stays = newest is None or (newest.mean - before) / left >= LEFT if left else False
        return is_much and stays and is_clear(end)


class FollowUp:
    """The numbers after a change was noticed, for ``length`` observations.

    Examples
    --------
    >>> shift = Shift(Part(90, 0.0, 1.0), Part(24, 1.0, 1.0), 1.0, 76, 52, 70, None, None, False)
    >>> follow_up = FollowUp(shift, seq=100, length=4)
    >>> [follow_up.add(seq, float(seq > 102)) for seq in range(101, 105)]
    [False, False, False, True]
    >>> outcome = follow_up.outcome(104, back_seq=102)
    >>> outcome.level.mean, outcome.late.mean, outcome.lasted
    (0.5, 1.0, 26)
    """

    def __init__(self, shift: Shift, seq: int, length: int) -> None:
        self.shift = shift
        self._seq, self._length = seq, length
        self._parts: list[Part | None] = [None] * PARTS
        self._undone_seq: int | None = None
        self._interim: Part | None = None

    @property
    def last_seq(self) -> int:
        """The first observation that may be the last one."""
        return self._seq + self._length

    def add(self, seq: int, number: float) -> bool:
        """Take the next number; return whether it is the last one."""
        passed, one = seq - self._seq, Part(1, number, 0.0)
        place = min(PARTS * (passed - 1) // self._length, PARTS - 1)
        part = self._parts[place]
        self._parts[place] = one if part is None else part.joined(one)
        return passed >= self._length

    def add_all(self, seqs: Sequence[int], numbers: Sequence[float]) -> bool:
        """Take the next numbers; return whether the last one is among them."""
        return [self.add(*each) for each in zip(seqs, numbers, strict=True)][-1]

    def note_further(self, further: Shift) -> None:
        """Note a further change; the first one that undoes this one counts."""
        if self._undone_seq is not None or further.before is None:
            return
        # the numbers since the change before it
        between = further.before
        self._interim = between if self._interim is None else self._interim.joined(between)
        if further.undoes(self.shift):
            self._undone_seq = further.after_seq

    def outcome(self, seq: int, back_seq: int) -> Outcome:
        """Return what became of the change, after one number at least.

        ``back_seq`` is where the level most likely changed back, if no further change did that.
        """
        began, undone_seq = self.shift.after_seq, self._undone_seq
        return Outcome(
            self._seq,
            began,
            seq,
            _joined(self._parts) or self.shift.after,
            _joined(self._parts[PARTS // 2 :]),
            self._parts[-1],
            None if undone_seq is None else self._interim,
            lasted=max((back_seq if undone_seq is None else undone_seq) - began, 0),
            inflation=self.shift.inflation,
            before=self.shift.before,
        )


def _joined(parts: Sequence[Part | None]) -> Part | None:
    known = [part for part in parts if part is not None]
    return reduce(Part.joined, known) if known else None


class OpenChanges:
    """Changes of a stream that were published, and whose outcome is not known yet.

    Examples
    --------
    >>> changes = OpenChanges()
    >>> step = Change.notice(kind="drift", stream="features-0", seq=7, detail="", feature="a")
    >>> changes.add(replace(step, before=1.0, after=2.0))
    >>> level, late, newest = Part(90, 1.8, 9.0), Part(45, 1.7, 4.5), Part(22, 1.6, 2.2)
    >>> outcome = Outcome(7, 5, 99, level, late, newest, None, lasted=92, inflation=1.0)
    >>> change = changes.completed(series_of(step), step.incarnation, outcome, others=0.0)
    >>> change.status, change.after, change.after_std_error
    ('confirmed', 1.8, 0.0335...)
    """

    def __init__(self) -> None:
        self._open: dict[Series, list[Change]] = {}

    def add(self, change: Change) -> None:
        """Keep a published change until its outcome is known, or its explanations begin anew."""
        changes = self._open.get(series_of(change), [])
        same = [each for each in changes if each.incarnation == change.incarnation]
        self._open[series_of(change)] = [*same[1 - MOST_OPEN :], replace(change, curve_after=None)]

    def completed(
        self, series: Series, incarnation: Incarnation, outcome: Outcome, others: float
    ) -> Change | None:
        """Return the second record of a change; None if its first one was not published.

        ``others`` as in :func:`effect_of`.
        """
        changes = self._open.get(series, [])
        for change in changes:
            if (change.incarnation, change.seq) == (incarnation, outcome.seq):
                changes.remove(change)
                return outcome.completed(change, others)
        return None
