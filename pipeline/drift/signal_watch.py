"""A detector over one signal, and the change that it reports."""

from collections.abc import Sequence

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.follow_up import MOST_OPEN, FollowUp, Outcome, Shift, std_error_of
from fluxplain.drift.glr import GLR
from fluxplain.drift.glr_kernels import BLOCK
from fluxplain.drift.loss_course import LossCourse
from fluxplain.drift.windows import Windows
from fluxplain.schemas import FIRST_INCARNATION, Change, Incarnation
from fluxplain.schemas.change import change_id
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.record import Timestamp

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
        self._windows.add(seq, number, loss)
        self._course.add(loss, model)
        found: list[Outcome | Shift] = []
        over = [follow_up for follow_up in self._open if follow_up.add(seq, number)]
        found += [self._outcome(follow_up, seq) for follow_up in over]
        self._expect(loss_changed_seq)
        shift = self._detected(number)
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

    def _detected(self, number: float) -> Shift | None:
        """Feed the detector; return the shift at an alarm."""
        adwin = self._detector if self._is_adwin else None
        glr = self._detector if isinstance(self._detector, GLR) else None
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
            inflation=glr.inflation if glr else None if self.signal == "value" else 1.0,
            after_seq=newer.seq,
            replay_seq=replay_seq,
            earliest_seq=min(earliest_seq, newer.seq),
            loss_before=loss_before,
            loss_after=loss_after,
            learning=has_lower_loss and self._course.is_falling,
        )

    def _outcome(self, follow_up: FollowUp, seq: int) -> Outcome:
        """End a follow-up; return the outcome."""
        self._open.remove(follow_up)
        # where the level most likely changed back
        back = self._windows.split_by_mean(rises=not follow_up.shift.rises)[1]
        return follow_up.outcome(seq, back.seq)

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
