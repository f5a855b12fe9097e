"""What surrounds one change, in bounded memory: for its picture."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.monitor.history import Key, Point, Series
from schemas import Change, Explanation, Prediction
from schemas.change import METHOD_NAMES
from schemas.explanation import Method
from schemas.numbers import is_moderate

CONTEXT = 1_000
"""Observations shown before and after a change, at least: about as many as a smoothing rate of
0.001 remembers."""

BINS = 60
"""Means that are shown of single observations; more could not be told apart."""


@dataclass(slots=True)
class Moments:
    """Mean and variance of numbers that come one by one (Welford 1962).

    Examples
    --------
    >>> moments = Moments()
    >>> for number in (1.0, 2.0, 3.0):
    ...     moments.add(number)
    >>> moments.n, moments.mean, round(moments.std_error, 3)
    (3, 2.0, 0.577)
    """

    n: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, number: float) -> None:
        """Take a number."""
        self.n += 1
        delta = number - self.mean
        self.mean += delta / self.n
        self._squares += delta * (number - self.mean)

    @property
    def std_error(self) -> float:
        """Standard error of the mean; infinite for fewer than two numbers."""
        return math.sqrt(self._squares / (self.n - 1) / self.n) if self.n > 1 else math.inf


@dataclass(frozen=True, slots=True)
class Window:
    """Which observations belong to a change.

    Attributes
    ----------
    begin, end
        The first and the last one to show.
    since
        The first one that the change's mean before is about: detectors begin anew at a change.
    before
        The first one of those that are compared with the ones from ``after`` on: as many as these,
        if there are.
    after
        The first one after the change.
    seen
        Where the change was seen: the last one that is compared.
    """

    begin: int
    since: int
    before: int
    after: int
    seen: int
    end: int

    @classmethod
    def of(cls, change: Change) -> "Window":
        """Return the window of a change.

        Examples
        --------
        >>> change = Change.notice(kind="gap", stream="features-0", seq=2700, detail="")
        >>> Window.of(change)
        Window(begin=1700, since=0, before=2700, after=2700, seen=2700, end=3700)
        """
        after = change.seq if change.after_seq is None else change.after_seq
        since = 0 if change.previous_seq is None else change.previous_seq + 1
        before = after if change.replay_seq is None else max(change.replay_seq, since)
        return cls(
            begin=max(0, min(before, after - CONTEXT)),
            since=since,
            before=before,
            after=after,
            seen=change.seq,
            end=change.seq + max(CONTEXT, (change.seq - after) // 2),
        )


class Bins:
    """Means of neighbouring observations; a bin begins where the change does.

    Examples
    --------
    >>> bins = Bins(Window(begin=0, since=0, before=20, after=60, seen=100, end=120))
    >>> for seq in range(120):
    ...     bins.add(seq, float(seq >= 60))
    >>> [(middle, moments.mean) for middle, moments in bins][28:32]
    [(56.5, 0.0), (58.5, 0.0), (60.5, 1.0), (62.5, 1.0)]
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._width = -(-(window.end - window.begin) // BINS)
        self._bins: dict[int, Moments] = {}

    @property
    def width(self) -> int:
        """Observations a bin."""
        return self._width

    def add(self, seq: int, number: float) -> None:
        """Take what an observation adds."""
        self._bins.setdefault((seq - self._window.after) // self._width, Moments()).add(number)

    def __iter__(self) -> Iterator[tuple[float, Moments]]:
        """Yield the middle of each bin, if that is in the window, and what is in it.

        Of the others there are only a few observations: their means would set the scale.
        """
        for i in sorted(self._bins):
            middle = self._window.after + (i + 0.5) * self._width - 0.5
            if self._window.begin <= middle <= self._window.end:
                yield middle, self._bins[i]


@dataclass(frozen=True, slots=True)
class Move:
    """What a feature's increments were on average, before a change and after it."""

    feature: str
    before: Moments
    after: Moments

    @property
    def difference(self) -> float:
        """How far the mean moved."""
        return self.after.mean - self.before.mean

    @property
    def std_error(self) -> float:
        """Standard error of the difference, of increments that do not depend on each other."""
        return math.hypot(self.before.std_error, self.after.std_error)


class Story:
    """Collects what is published around a change.

    Parameters
    ----------
    change
        A drift of an explanation or of the loss.

    Attributes
    ----------
    window
        Which observations belong to it.
    course
        The explanation that changed, over time; empty for the loss.
    increments
        Means of what single observations add to the explanation that changed.
    losses
        Means of the model's loss.
    """

    def __init__(self, change: Change) -> None:
        self.change = change
        self.window = Window.of(change)
        self.course = Series[Point]()
        self.increments = Bins(self.window)
        self.losses = Bins(self.window)
        self._moves: dict[Key, Move] = {}
        self._read: dict[Key, int] = {}

    def add(self, record: Prediction | Explanation) -> None:
        """Take a record that did not come before; of others than the change's stream nothing."""
        if record.stream != self.change.stream or record.seq < self.window.begin:
            return
        if isinstance(record, Explanation):
            self._add_explanation(record)
        elif record.loss is not None and record.seq <= self.window.end and is_moderate(record.loss):
            self.losses.add(record.seq, record.loss)

    def moves(self, method: Method) -> list[Move]:
        """Return the features whose mean before and after is known, the largest move first."""
        found = [
            move
            for (_, m), move in self._moves.items()
            if m == method and move.before.n > 1 and move.after.n > 1
        ]
        return sorted(found, key=lambda move: -abs(move.difference))

    def _add_explanation(self, e: Explanation) -> None:
        key = (e.feature, e.method)
        is_changed = key == (self.change.feature, self.change.method)
        if is_changed and e.seq <= self.window.end:
            self.course.add(Point(e.seq, e.value, e.std_error))
        # an explainer that began anew may group increments that were seen with new ones
        read = self._read.get(key, -1)
        self._read[key] = e.seq
        for seq, increment in zip(e.seqs, e.increments, strict=True):
            is_shown = self.window.begin <= seq <= self.window.end
            if read < seq and is_shown and is_moderate(increment):
                self._add_increment(key, seq, increment)

    def _add_increment(self, key: Key, seq: int, increment: float) -> None:
        feature, method = key
        window = self.window
        if (feature, method) == (self.change.feature, self.change.method):
            self.increments.add(seq, increment)
        if window.before <= seq <= window.seen:
            move = self._moves.setdefault(key, Move(feature, Moments(), Moments()))
            (move.before if seq < window.after else move.after).add(increment)


def strongest(changes: Sequence[Change], most: int) -> list[Change]:
    """Return those drifts whose means are most standard errors apart, in their order.

    Where the means have none, it is the standard error of the explanation at that time.
    """

    def strength(change: Change) -> tuple[float, int]:
        if change.before is None or change.after is None:
            return 0.0, change.seq
        errors = (change.before_std_error, change.after_std_error)
        known = [error for error in errors if error is not None] or [change.std_error or 0.0]
        error = math.hypot(*known)
        return (abs(change.after - change.before) / error if error else 0.0), change.seq

    drifts = [change for change in changes if change.kind == "drift"]
    chosen = {change.id for change in sorted(drifts, key=strength, reverse=True)[:most]}
    return [change for change in drifts if change.id in chosen]


def name_of(change: Change) -> str:
    """Return what changed: a method's name, or the loss."""
    return METHOD_NAMES[change.method] if change.method else change.kind
