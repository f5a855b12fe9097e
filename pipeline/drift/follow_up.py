"""What becomes of a change: whether its step lasts."""

from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from fluxplain.drift.windows import Part
from fluxplain.schemas import Change, Incarnation
from fluxplain.schemas.change import Signal, Status
from fluxplain.schemas.methods import Watched

LEFT = 0.5
"""A change is confirmed if at least this share of its step is left."""


Series = tuple[str | None, Watched | None, Signal | None]
"""What a change is about: feature, method and signal."""


def series_of(change: Change) -> Series:
    """Return what a change is about."""
    return change.feature, change.method, change.signal


def effect_of(change: Change, others: float = 0.0) -> float | None:
    """Return the difference of the means as a share of the importance of all features.

    Parameters
    ----------
    others
        Sum of the absolute means of the other features.

    Returns
    -------
    effect
        From 0 to 2; None if nothing is known of before.
    """
    if change.before is None or change.after is None:
        return None
    all_of_them = others + max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) / all_of_them if all_of_them else 0.0


class Outcome(NamedTuple):
    """A signal after a change was noticed.

    Attributes
    ----------
    seq, after_seq, status_seq
        Seq of the change, where it began, and of the newest number.
    level
        The numbers after ``seq``, or from the change to a further one; None without any.
    level_std_error
        Standard error of their mean; None if unknown.
    late_mean
        Mean after the further change, or of the second half of the observations.
    lasted
        Number of observations from the beginning of the change to the further one, or to where the
        level most likely changed back.
    has_further
        Whether there was a further change.
    """

    seq: int
    after_seq: int
    status_seq: int
    level: Part | None
    level_std_error: float | None
    late_mean: float
    lasted: int
    has_further: bool = False

    def completed(self, change: Change, others: float) -> Change:
        """Return the second record of a change; ``others`` as in :func:`effect_of`."""
        status = self._status(change)
        level, error = change.after, change.after_std_error
        if self.level is not None:
            level, error = self.level.mean, self.level_std_error
        change = replace(
            change,
            status=status,
            status_seq=self.status_seq,
            lasted=None if status == "confirmed" else self.lasted,
            after=level,
            after_std_error=error,
            window=change.window if self.level is None else self.level.n,
        )
        return replace(change, effect_size=effect_of(change, others))

    def _status(self, change: Change) -> Status:
        before, after = change.before or 0.0, change.after or 0.0
        level = after if self.level is None else self.level.mean
        step = after - before
        left, left_late = (
            (mean - before) / step if step else 1.0 for mean in (level, self.late_mean)
        )
        if min(left, left_late) >= LEFT:
            return "confirmed"
        return "reverted" if self.has_further and left_late < LEFT else "transient"


class FollowUp:
    """The numbers after a change was noticed, for ``length`` observations.

    Examples
    --------
    >>> follow_up = FollowUp(seq=100, length=4, least=2)
    >>> [follow_up.add(seq, float(seq > 102)) for seq in range(101, 105)]
    [False, False, False, True]
    >>> follow_up.level.mean, follow_up.late.mean
    (0.5, 1.0)
    """

    def __init__(self, seq: int, length: int, least: int) -> None:
        self.seq = seq
        self._middle, self._end, self._least = seq + length // 2, seq + length, least
        self._parts: list[Part | None] = [None, None]

    @property
    def level(self) -> Part | None:
        """All numbers so far; None before the first."""
        known = [part for part in self._parts if part is not None]
        return reduce(Part.joined, known) if known else None

    @property
    def late(self) -> Part | None:
        """The numbers of the second half; None before the first."""
        return self._parts[1]

    def add(self, seq: int, number: float) -> bool:
        """Take the next number; return whether it is the last one.

        It takes ``least`` numbers at least.
        """
        half, one = int(seq > self._middle), Part(1, number, 0.0)
        part = self._parts[half]
        self._parts[half] = one if part is None else part.joined(one)
        self._least -= 1
        return seq >= self._end and self._least <= 0


class OpenChanges:
    """Changes of a stream that were published, and whose outcome is not known yet.

    Examples
    --------
    >>> changes = OpenChanges()
    >>> step = Change.notice(kind="drift", stream="features-0", seq=7, detail="", feature="a")
    >>> changes.add(replace(step, before=1.0, after=2.0))
    >>> outcome = Outcome(7, 5, 99, Part(90, 1.8, 9.0), 0.03, late_mean=1.7, lasted=92)
    >>> change = changes.completed(series_of(step), step.incarnation, outcome, others=0.0)
    >>> change.status, change.after, change.after_std_error
    ('confirmed', 1.8, 0.03)
    """

    def __init__(self) -> None:
        self._open: dict[Series, Change] = {}

    def add(self, change: Change) -> None:
        """Keep a published change until its outcome is known."""
        self._open[series_of(change)] = change

    def completed(
        self, series: Series, incarnation: Incarnation, outcome: Outcome, others: float
    ) -> Change | None:
        """Return the second record of a change; None if its first one was not published.

        ``others`` as in :func:`effect_of`.
        """
        change = self._open.get(series)
        if change is None or (change.incarnation, change.seq) != (incarnation, outcome.seq):
            return None
        del self._open[series]
        return outcome.completed(change, others)
