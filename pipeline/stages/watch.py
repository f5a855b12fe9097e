"""A detector over one signal, and the change that it reports."""

import math
from collections import deque
from dataclasses import replace
from typing import NamedTuple

from river.drift import ADWIN

from pipeline.detectors import DetectorSettings
from pipeline.stages.sentences import sentence
from pipeline.stages.windows import Windows
from schemas import Change
from schemas.change import Watched, change_id
from schemas.record import Timestamp

RECENT = 30
"""Newest numbers that stand for what is now, where the detector does not say since when."""


ROUNDING = 1e-12
"""Relative error of the sums that a detector keeps: about a rounding for each of many numbers."""


class Part(NamedTuple):
    """Some of the numbers that a detector compares.

    Attributes
    ----------
    n, mean, squares
        How many, their mean, and the sum of the squared distances from it.
    """

    n: int
    mean: float
    squares: float

    @property
    def std_error(self) -> float | None:
        """Standard error of the mean, of numbers that do not depend on each other.

        None of a single number, and if they are too large to be squared and summed.
        """
        if self.n < 2 or not math.isfinite(self.squares):
            return None
        return math.sqrt(self.squares / (self.n - 1) / self.n)

    def with_number(self, number: float) -> "Part":
        """Return this with one more number (Welford's update)."""
        n = self.n + 1
        mean = self.mean + (number - self.mean) / n
        return Part(n, mean, self.squares + (number - self.mean) * (number - mean))

    def without(self, part: "Part") -> "Part":
        """Return what is left without some of the numbers (Chan's formula)."""
        n = self.n - part.n
        mean = _left(self.n * self.mean, part.n * part.mean) / n
        between = n * part.n / self.n * (mean - part.mean) ** 2
        return Part(n, mean, max(_left(self.squares, part.squares + between), 0.0))


NOTHING = Part(0, 0.0, 0.0)


class Shift(NamedTuple):
    """What a signal was before and after a change.

    Attributes
    ----------
    before, after
        The numbers that are compared; before it there may be none.
    after_seq, replay_seq
        Where the numbers after it begin, and where as many more begin.
    loss_before, loss_after
        Mean loss of the observations that the numbers are of; None without any.
    """

    before: Part | None
    after: Part
    after_seq: int
    replay_seq: int
    loss_before: float | None
    loss_after: float | None


class Watch:
    """Feeds a detector, and says by how much the signal has changed when it alarms.

    Parameters
    ----------
    settings
        Which detector.
    seed
        Where its random numbers come from, if it has any.

    Examples
    --------
    >>> watch = Watch(DetectorSettings("increment", "adwin", {}), seed="")
    >>> [seq for seq in range(200) if watch.update(seq, float(seq >= 100), loss=None)]
    [127]
    """

    def __init__(self, settings: DetectorSettings, seed: str) -> None:
        self._signal = settings.signal
        self._detector = settings.make(seed)
        self._last_change: int | None = None
        self._windows = Windows()
        # what other detectors than ADWIN do not tell
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._older = NOTHING

    @property
    def mean(self) -> float:
        """Mean of the numbers that stand for what is now; 0 before the first."""
        if isinstance(self._detector, ADWIN):
            return float(self._detector.estimation)
        return sum(self._recent) / max(len(self._recent), 1)

    def update(self, seq: int, number: float, loss: float | None) -> Shift | None:
        """Take the next number; return the shift if the detector alarms.

        Parameters
        ----------
        seq, number, loss
            Of which observation, its number, and the model's loss on it.
        """
        parts: tuple[Part | None, Part] | None
        if isinstance(self._detector, ADWIN):
            parts = self._update_adwin(self._detector, number)
            self._windows.add(seq, loss)
        else:
            if self._detector.drift_detected:  # it begins anew with this number
                self._recent.clear()
                self._older, self._windows = NOTHING, Windows()
            self._windows.add(seq, loss)
            parts = self._update_other(number)
        if parts is None:
            return None
        n = parts[1].n
        older, newer = self._windows.split(n)
        replay_seq = self._windows.split(2 * n)[1].seq
        self._windows.forget(n)
        return Shift(
            *parts,
            after_seq=newer.seq,
            replay_seq=replay_seq,
            loss_before=older and older.mean_loss,
            loss_after=newer.mean_loss,
        )

    def _update_adwin(self, adwin: ADWIN, number: float) -> tuple[Part, Part] | None:
        width, total, squares = adwin.width, adwin.total, adwin.variance
        adwin.update(number)
        # ADWIN forgets its detection and its window at the next update: read them now
        if not adwin.drift_detected:
            return None
        after = _part(adwin.width, adwin.total, adwin.variance)
        return _part(width, total, squares).with_number(number).without(after), after

    def _update_other(self, number: float) -> tuple[Part | None, Part] | None:
        if len(self._recent) == RECENT:
            self._older = self._older.with_number(self._recent[0])
        self._recent.append(number)
        self._detector.update(number)
        if not self._detector.drift_detected:
            return None
        after = NOTHING
        for each in self._recent:
            after = after.with_number(each)
        return self._older if self._older.n else None, after

    def change(
        self,
        shift: Shift,
        *,
        stream: str,
        seq: int,
        ts: Timestamp | None,
        method: Watched,
        feature: str | None = None,
        value: float | None = None,
        std_error: float | None = None,
    ) -> Change:
        """Return the record of a change, which knows the one before it."""
        previous_seq, self._last_change = self._last_change, seq
        before, after = shift.before, shift.after
        # the numbers of the other signal overlap, so that these formulas do not hold
        is_independent = self._signal == "increment"
        change = Change(
            id=change_id(stream, "drift", feature, method, seq),
            stream=stream,
            kind="drift",
            seq=seq,
            previous_seq=previous_seq,
            ts=ts,
            feature=feature,
            method=method,
            detail="",
            signal=self._signal,
            before=before and before.mean,
            before_std_error=before.std_error if before and is_independent else None,
            after=after.mean,
            after_std_error=after.std_error if is_independent else None,
            direction=before and ("rose" if after.mean > before.mean else "fell"),
            window=after.n,
            after_seq=shift.after_seq,
            delay_bound=seq - shift.after_seq,
            replay_seq=shift.replay_seq,
            value=value,
            std_error=std_error,
            loss_before=shift.loss_before,
            loss_after=shift.loss_after,
        )
        return replace(change, detail=sentence(change))


def _left(total: float, part: float) -> float:
    """Return the difference; 0 where it is but what rounding has left of equal numbers."""
    return 0.0 if math.isclose(total, part, rel_tol=ROUNDING) else total - part


def _part(width: float, total: float, squares: float) -> Part:
    """Return what ADWIN tells of a window; its "variance" is the sum of squares."""
    return Part(int(width), float(total) / max(int(width), 1), float(squares))
