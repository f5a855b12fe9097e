"""A detector over one signal, and the change that it reports."""

from collections.abc import Sequence
from typing import NamedTuple

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.expectation import Expectation
from fluxplain.drift.follow_up import PARTS, FollowUp, Outcome, std_error_of
from fluxplain.drift.glr import GLR
from fluxplain.drift.glr_kernels import BLOCK
from fluxplain.drift.loss_course import LossCourse
from fluxplain.drift.windows import Part, Windows
from fluxplain.schemas import FIRST_INCARNATION, Change, Incarnation
from fluxplain.schemas.change import change_id
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.record import Timestamp

FOLLOW_UP = 1000
"""Observations after a change until its outcome is known."""


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


class SignalWatch:
    """Feeds a detector, and estimates the shift of the signal when it alarms.

    What becomes of the shift is known after ``follow_up`` observations, or at the next one.

    Examples
    --------
    >>> watch = SignalWatch(DetectorSettings("increment", "glr", {}), seed="", follow_up=100)
    >>> for seq in range(700):
    ...     for found in watch.update(seq, float(seq >= 500), loss=None):
    ...         print(seq, type(found).__name__)
    527 Shift
    627 Outcome
    """

    def __init__(self, settings: DetectorSettings, seed: str, follow_up: int = FOLLOW_UP) -> None:
        self.signal = settings.signal
        self._length = follow_up
        self._open: list[tuple[Shift, FollowUp]] = []  # until their outcomes are known
        self._course = LossCourse()
        self._smallest = settings.parameters.get("min_window_length", 1)
        self._detector = settings.make(seed)
        self._is_glr = isinstance(self._detector, GLR)
        # without importing River, which takes long
        self._is_adwin = hasattr(self._detector, "estimation")
        self._windows = Windows()
        self._expectation = Expectation()

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

        After the seq at which the loss began to change, a change needs less evidence for a while.
        Returns the outcomes of shifts that are known now, and the shift at an alarm.
        """
        self._windows.add(seq, number, loss)
        self._course.add(loss, model)
        shift = self._detected(number, self._expectation.update(loss_changed_seq, self._windows))
        for _, follow_up in self._open:
            follow_up.add(seq, number)
        found: list[Outcome | Shift] = []
        while self._open and self._open[0][1].is_over:
            found.append(self._outcome(*self._open.pop(0), seq))
        if shift is not None:
            for _, follow_up in self._open:
                follow_up.note_further(shift.after_seq, shift.before)
            self._open.append((shift, FollowUp(seq, self._length, shift.after.n)))
            found.append(shift)
        return found

    def _detected(self, number: float, expected: int) -> Shift | None:
        """Feed the detector; return the shift at an alarm, which is ``expected``, if not 0.

        So many of the newest numbers came since it may have begun.
        """
        adwin = self._detector if self._is_adwin else None
        glr = self._detector if self._is_glr else None
        width, total = (adwin.width, adwin.total) if adwin else (0, 0.0)
        if glr:
            glr.update(number, expected)
        else:
            self._detector.update(number)
        if not self._detector.drift_detected:
            return None
        earliest_seq, rises = self._windows.seq, None
        if glr:
            earliest_seq = self._windows.split(glr.widest)[1].seq
            # without the blocks around the split: one has numbers of both sides
            older = self._windows.split(glr.width + BLOCK, glr.span - BLOCK)[0]
            newer = self._windows.split(glr.width - BLOCK)[1]
        else:
            if adwin:  # it reports which two parts differ in the mean, but not where it changed
                dropped = (total + number - adwin.total) / (width + 1 - adwin.width)
                rises = adwin.estimation > dropped
                earliest_seq = self._windows.split(int(adwin.width))[1].seq
            older, newer = self._windows.split_by_mean(rises=rises, smallest=self._smallest)
        replay_seq = self._windows.split(2 * newer.part.n)[1].seq
        self._windows.forget(newer.part.n)
        after, loss_before, loss_after = newer.part, older and older.mean_loss, newer.mean_loss
        if glr and older:
            mean = older.part.mean
            after = after._replace(mean=mean + glr.selection * (after.mean - mean))
        has_lower_loss = (
            loss_before is not None and loss_after is not None and loss_after < loss_before
        )
        return Shift(
            older and older.part,
            after,
            inflation=self._inflation(),
            after_seq=newer.seq,
            replay_seq=replay_seq,
            earliest_seq=min(earliest_seq, newer.seq),
            loss_before=loss_before,
            loss_after=loss_after,
            learning=has_lower_loss and self._course.is_falling,
        )

    def _inflation(self) -> float | None:
        if isinstance(self._detector, GLR):
            return self._detector.inflation
        # smoothed values depend on each other more than any detector here expects
        return None if self.signal == "value" else 1.0

    def _outcome(self, shift: Shift, follow_up: FollowUp, seq: int) -> Outcome:
        """Return the outcome of a shift, whose time is over."""
        further_seq = follow_up.further_seq
        if further_seq is None:  # where the level most likely changed back
            rises = shift.before is not None and shift.after.mean < shift.before.mean
            further_seq = self._windows.split_by_mean(rises=rises)[1].seq
        return Outcome(
            follow_up.seq,
            shift.after_seq,
            seq,
            follow_up.level,
            follow_up.newest(PARTS // 2),
            follow_up.newest(),
            follow_up.interim,
            lasted=max(further_seq - shift.after_seq, 0),
            inflation=shift.inflation,
        )

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
        model_version: str | None = None,
        incarnation: Incarnation = FIRST_INCARNATION,
    ) -> Change:
        """Return the record of a change, without its sentence and what other records tell."""
        before, after = shift.before, shift.after
        return Change(
            id=change_id(stream, "drift", feature, method, seq, incarnation, self.signal),
            stream=stream,
            kind="drift",
            seq=seq,
            previous_seq=None,
            ts=ts,
            feature=feature,
            method=method,
            detail="",
            signal=self.signal,
            status="noticed",
            status_seq=seq,
            learning=shift.learning,
            before=before and before.mean,
            before_std_error=std_error_of(before, shift.inflation),
            after=after.mean,
            after_std_error=std_error_of(after, shift.inflation),
            direction=before and ("rose" if after.mean > before.mean else "fell"),
            window=after.n,
            after_seq=shift.after_seq,
            delay_bound=seq - shift.earliest_seq,
            replay_seq=shift.replay_seq,
            value=value,
            std_error=std_error,
            loss_before=shift.loss_before,
            loss_after=shift.loss_after,
            model_version=model_version,
            incarnation=incarnation,
        )
