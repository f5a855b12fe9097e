"""A detector over one signal, and the shifts that it finds."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeGuard

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.follow_up import MOST_OPEN, FollowUp, Outcome, Shift
from fluxplain.drift.glr import GLR
from fluxplain.drift.glr_rows import BLOCK
from fluxplain.drift.loss_course import LossCourse
from fluxplain.drift.windows import Bucket, Windows

FOLLOW_UP = 1000
"""Observations after a change until its outcome is known."""


class SignalWatch:
    """Feeds a detector, and estimates the shift of the signal when it alarms.

    What becomes of the shift is known after ``follow_up`` observations.

    Examples
    --------
    >>> watch = SignalWatch(DetectorSettings("increment", "glr", {}), seed="", follow_up=100)
    >>> for seq in range(700):
    ...     for found in watch.update(seq, float(seq >= 500), loss=None):
    ...         print(seq, type(found).__name__)
    527 Shift
    627 Outcome
    """

    category: ClassVar[None] = None
    """A signal of numbers has no category."""

    def __init__(self, settings: DetectorSettings, seed: str, follow_up: int = FOLLOW_UP) -> None:
        self.signal = settings.signal
        self._length = follow_up
        self._open: list[FollowUp] = []
        self._course = LossCourse()
        self._smallest = settings.parameters.get("min_window_length", 1)
        self._detector = settings.make(seed)
        # without importing River, which takes long
        self._is_adwin = hasattr(self._detector, "estimation")
        self._windows = Windows()
        self._loss_changed_seq: int | None = None

    @property
    def mean(self) -> float:
        """Mean of the numbers since the last change; 0 before the first."""
        return self._windows.mean

    def update(
        self,
        seq: int,
        number: float,
        loss: float | None,
        model: str | None = None,
        loss_changed_seq: int | None = None,
    ) -> Sequence[Outcome | Shift]:
        """Take the number and the loss of observation ``seq``, and the version of the model.

        If a change of the loss was noticed, ``loss_changed_seq`` is where it began: for a while, a
        change since then needs less evidence.

        Returns the outcomes of shifts that are known now, and the shift at an alarm.
        """
        found = self.update_run((seq,), (number,), loss, model, loss_changed_seq)
        return [each for _, each in found]

    def update_run(
        self,
        seqs: Sequence[int],
        numbers: Sequence[float],
        loss: float | None = None,
        model: str | None = None,
        loss_changed_seq: int | None = None,
    ) -> Iterator[tuple[int, Outcome | Shift]]:
        """Take the numbers of several observations, as :meth:`update` takes each, but faster.

        The loss is that of each; a change of it was noticed before the last one. Yields what was
        found, with the seq at which it was.
        """
        end, is_news = 0, loss_changed_seq not in {None, self._loss_changed_seq}
        last = len(seqs) - 1 if is_news else len(seqs)  # the one after news is taken alone
        while end < len(numbers):
            begin, end = end, self._end(seqs, end, last)
            several, at = numbers[begin:end], seqs[begin:end]
            self._windows.add_run(at, several, loss)
            self._course.add(loss, model, times=len(several))
            over = [each for each in self._open if each.add_all(at, several)]
            if end == len(numbers):
                self._expect(loss_changed_seq)
            for each in self._found(seqs[end - 1], over, self._tested(several)):
                yield seqs[end - 1], each

    def _end(self, seqs: Sequence[int], begin: int, last: int) -> int:
        """Return up to where numbers can be taken together: nothing can be found in between."""
        if not _takes_runs(self._detector):
            return begin + 1
        end = min(begin + self._detector.room, max(last, begin + 1))
        for each in self._open:
            end = min(end, bisect_left(seqs, each.last_seq, begin, end) + 1)
        return end

    def _tested(self, numbers: Sequence[float]) -> Shift | None:
        """Pass numbers to the detector; return the shift if it alarms."""
        detector, width, total = self._detector, 0, 0.0
        if _takes_runs(detector):
            detector.update_run(numbers)
        else:
            [number] = numbers
            if self._is_adwin:
                width, total = detector.width, detector.total + number
            detector.update(number)
        return self._shift(width, total) if detector.drift_detected else None

    @property
    def is_learning(self) -> bool:
        """Whether the loss has fallen steadily since the model's start."""
        return self._course.is_falling

    def _found(
        self, seq: int, over: Sequence[FollowUp], shift: Shift | None
    ) -> list[Outcome | Shift]:
        """Return the outcomes of follow-ups that are over, and the shift at an alarm."""
        found: list[Outcome | Shift] = [self._outcome(each, seq) for each in over]
        if shift is None:
            return found
        for follow_up in self._open:
            follow_up.note_further(shift)
        if len(self._open) == MOST_OPEN:
            found.append(self._outcome(self._open[0], seq))
        if shift.before is not None:
            self._open.append(FollowUp(shift, seq, self._length))
        return [*found, shift]

    def _expect(self, loss_changed_seq: int | None) -> None:
        """Tell the detector since when a change is expected, if that is news."""
        if loss_changed_seq is None or loss_changed_seq == self._loss_changed_seq:
            return
        self._loss_changed_seq = loss_changed_seq
        if isinstance(self._detector, GLR):
            self._detector.expect(self._windows.count_since(loss_changed_seq))

    def _shift(self, width: int = 0, total: float = 0.0) -> Shift:
        """Return the shift at an alarm; ``width`` and ``total`` are ADWIN's before it."""
        windows, detector = self._windows, self._detector
        if isinstance(detector, GLR):
            shift = compared(windows, detector)
        else:
            earliest_seq, rises = windows.seq, None
            if self._is_adwin:  # it reports which two parts differ in the mean, but not where
                dropped = (total - detector.total) / (width + 1 - detector.width)
                rises = detector.estimation > dropped
                earliest_seq = windows.split(int(detector.width))[1].seq
            older, newer = windows.split_by_mean(rises=rises, smallest=self._smallest)
            inflation = None if self.signal == "value" else 1.0
            shift = shift_between(windows, older, newer, earliest_seq, inflation)
        windows.forget(shift.after.n)
        before, after = shift.loss_before, shift.loss_after
        has_lower_loss = before is not None and after is not None and after < before
        return shift._replace(learning=has_lower_loss and self.is_learning)

    def _outcome(self, follow_up: FollowUp, seq: int) -> Outcome:
        """End a follow-up; return the outcome."""
        self._open.remove(follow_up)
        # where the level most likely changed back
        back = self._windows.split_by_mean(rises=not follow_up.shift.rises)[1]
        return follow_up.outcome(seq, back.seq)


def _takes_runs(detector: object) -> TypeGuard[GLR]:
    """Return whether a detector takes several numbers at once; a user's subclass may not."""
    return isinstance(detector, GLR) and type(detector).update is GLR.update


def compared(windows: Windows, glr: GLR) -> Shift:
    """Return the shift of the numbers in windows at an alarm of their detector."""
    # without the blocks around the split: one has numbers of both sides
    older = windows.split(glr.width + BLOCK, glr.span - BLOCK)[0]
    newer = windows.split(glr.width - BLOCK)[1]
    earliest_seq = windows.split(glr.widest)[1].seq
    shift = shift_between(windows, older, newer, earliest_seq, glr.inflation)
    if older is None:
        return shift
    mean, after = older.part.mean, shift.after
    selected = mean + glr.selection * (after.mean - mean)
    return shift._replace(after=after._replace(mean=selected))


def shift_between(
    windows: Windows,
    older: Bucket | None,
    newer: Bucket,
    earliest_seq: int,
    inflation: float | None,
) -> Shift:
    """Return the shift from older numbers to the newest ones of windows."""
    return Shift(
        older and older.part,
        newer.part,
        inflation=inflation,
        after_seq=newer.seq,
        replay_seq=windows.split(2 * newer.part.n)[1].seq,
        earliest_seq=min(earliest_seq, newer.seq),
        loss_before=older and older.mean_loss,
        loss_after=newer.mean_loss,
        learning=False,
    )
