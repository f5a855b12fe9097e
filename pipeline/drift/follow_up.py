"""What becomes of a change: whether its step lasts."""

import math
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from fluxplain.drift.windows import Part
from fluxplain.schemas import Change, Incarnation
from fluxplain.schemas.change import Signal, Status
from fluxplain.schemas.methods import Watched

LEFT = 0.5
"""A change is confirmed if at least this share of its step is left."""

PARTS = 4
"""The observations after a change are divided into so many parts."""


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


def std_error_of(part: Part | None, inflation: float | None) -> float | None:
    """Return the standard error of a mean; None if unknown.

    ``inflation`` is the ratio of its variance to that of a mean of independent numbers.
    """
    if part is None or part.std_error is None or inflation is None:
        return None
    return part.std_error * math.sqrt(inflation)


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
        The numbers before a further change; None without one.
    lasted
        Number of observations from the beginning of the change to the further one, or to where the
        level most likely changed back.
    inflation
        As in :func:`std_error_of`.
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

    def completed(self, change: Change, others: float) -> Change:
        """Return the second record of a change; ``others`` as in :func:`effect_of`."""
        status = self._status(change)
        level = self.interim if status == "reverted" and self.interim else self.level
        change = replace(
            change,
            status=status,
            status_seq=self.status_seq,
            lasted=None if status == "confirmed" else self.lasted,
            after=level.mean,
            after_std_error=std_error_of(level, self.inflation),
            window=level.n,
        )
        return replace(change, effect_size=effect_of(change, others))

    def _status(self, change: Change) -> Status:
        before = change.before or 0.0
        step = (change.after or 0.0) - before

        def has_left(part: Part | None, error: float = 0.0) -> bool:
            if part is None or not step:
                return True
            return (part.mean - before) / step + error / abs(step) >= LEFT

        # a quarter has few numbers: it counts only beyond its error
        error = std_error_of(self.newest, self.inflation) or 0.0
        is_left = has_left(self.late) and has_left(self.newest, error)
        if is_left and has_left(self.level):
            return "confirmed"
        return "reverted" if self.interim and not is_left else "transient"


class FollowUp:
    """The numbers after a change was noticed, for ``length`` observations.

    Examples
    --------
    >>> follow_up = FollowUp(seq=100, length=4, least=2)
    >>> for seq in range(101, 105):
    ...     follow_up.add(seq, float(seq > 102))
    >>> follow_up.is_over, follow_up.newest().mean, follow_up.level.mean
    (True, 1.0, 0.5)
    """

    def __init__(self, seq: int, length: int, least: int) -> None:
        self.seq = seq
        self.is_over = False
        self.further_seq: int | None = None
        self.interim: Part | None = None
        self._length, self._least = length, least
        self._parts: list[Part | None] = [None] * PARTS

    @property
    def level(self) -> Part:
        """All numbers so far, at least one."""
        return reduce(Part.joined, [part for part in self._parts if part is not None])

    def newest(self, parts: int = 1) -> Part | None:
        """Return the numbers of the last part, or of several; None without any."""
        known = [part for part in self._parts[PARTS - parts :] if part is not None]
        return reduce(Part.joined, known) if known else None

    def add(self, seq: int, number: float) -> None:
        """Take the next number: those of ``length`` observations, and ``least`` at least."""
        passed, one = seq - self.seq, Part(1, number, 0.0)
        place = min(PARTS * (passed - 1) // self._length, PARTS - 1)
        part = self._parts[place]
        self._parts[place] = one if part is None else part.joined(one)
        self._least -= 1
        self.is_over = passed >= self._length and self._least <= 0

    def note_further(self, after_seq: int, before: Part | None) -> None:
        """Note where a further change began, and the numbers before it; the first one counts."""
        if self.further_seq is None:
            self.further_seq, self.interim = after_seq, before


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
        """Keep a published change until its outcome is known."""
        self._open.setdefault(series_of(change), []).append(change)

    def completed(
        self, series: Series, incarnation: Incarnation, outcome: Outcome, others: float
    ) -> Change | None:
        """Return the second record of a change; None if its first one was not published.

        ``others`` as in :func:`effect_of`. Older changes of the series will have no outcome: its
        explanations have begun anew since.
        """
        changes = self._open.get(series, [])
        about = [(change.incarnation, change.seq) for change in changes]
        if (incarnation, outcome.seq) not in about:
            return None
        place = about.index((incarnation, outcome.seq))
        self._open[series] = changes[place + 1 :]
        return outcome.completed(changes[place], others)
