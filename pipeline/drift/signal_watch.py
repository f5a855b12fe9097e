"""A detector over one signal, and the change that it reports."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.follow_up import FollowUp, Outcome
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
        Ratio of the variance of their means to that of means of independent numbers.
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
    inflation: float
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
        self._shift: Shift | None = None  # the last one, until its outcome is known
        self._follow_up: FollowUp | None = None
        self._course = LossCourse()
        self._smallest = settings.parameters.get("min_window_length", 1)
        self._detector = settings.make(seed)
        self._is_glr = isinstance(self._detector, GLR)
        # without importing River, which takes long
        self._is_adwin = hasattr(self._detector, "estimation")
        self._windows = Windows()

    @property
    def mean(self) -> float:
        """Mean of the numbers since the last change; 0 before the first."""
        return self._windows.mean

    def update(
        self, seq: int, number: float, loss: float | None, model: str | None = None
    ) -> Sequence[Outcome | Shift]:
        """Take the number and the loss of observation ``seq``, and the version of the model.

        Returns the outcome of the last shift, when it is known, and the shift at an alarm.
        """
        self._windows.add(seq, number, loss)
        self._course.add(loss, model)
        shift = self._detected(number)
        if shift is not None:
            outcome = self._superseded(shift, seq)
            self._shift, self._follow_up = shift, FollowUp(seq, self._length, shift.after.n)
            return [shift] if outcome is None else [outcome, shift]
        if self._follow_up is None or not self._follow_up.add(seq, number):
            return ()
        outcome = self._followed(seq)
        self._shift = self._follow_up = None
        return [] if outcome is None else [outcome]

    def _detected(self, number: float) -> Shift | None:
        """Feed the detector; return the shift at an alarm."""
        adwin = self._detector if self._is_adwin else None
        glr = self._detector if self._is_glr else None
        width, total = (adwin.width, adwin.total) if adwin else (0, 0.0)
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
            inflation=glr.inflation if glr else 1.0,
            after_seq=newer.seq,
            replay_seq=replay_seq,
            earliest_seq=min(earliest_seq, newer.seq),
            loss_before=loss_before,
            loss_after=loss_after,
            learning=has_lower_loss and self._course.is_falling,
        )

    def _superseded(self, further: Shift, seq: int) -> Outcome | None:
        """Return the outcome of the last shift if there is a further one."""
        last, follow_up = self._shift, self._follow_up
        if last is None or follow_up is None:
            return None
        level = further.before
        return Outcome(
            follow_up.seq,
            last.after_seq,
            seq,
            level,
            self._std_error(level, further.inflation),
            late_mean=further.after.mean,
            lasted=max(further.after_seq - last.after_seq, 0),
            has_further=True,
        )

    def _followed(self, seq: int) -> Outcome | None:
        """Return the outcome of the last shift, whose time is over."""
        last, follow_up = self._shift, self._follow_up
        if last is None or last.before is None or follow_up is None or follow_up.level is None:
            return None
        level = follow_up.level
        back = self._windows.split_by_mean(rises=last.after.mean < last.before.mean)[1]
        return Outcome(
            follow_up.seq,
            last.after_seq,
            seq,
            level,
            self._std_error(level, last.inflation),
            late_mean=(follow_up.late or level).mean,
            lasted=back.seq - last.after_seq,
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
            before_std_error=self._std_error(before, shift.inflation),
            after=after.mean,
            after_std_error=self._std_error(after, shift.inflation),
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

    def _std_error(self, part: Part | None, inflation: float) -> float | None:
        # smoothed values depend on each other more than any detector here expects
        if part is None or part.std_error is None or self.signal == "value":
            return None
        return part.std_error * math.sqrt(inflation)
