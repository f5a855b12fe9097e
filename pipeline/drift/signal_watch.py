"""A detector over one signal, and the change that it reports."""

import math
from typing import NamedTuple

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.glr import GLR
from fluxplain.drift.glr_kernels import BLOCK
from fluxplain.drift.windows import Part, Windows
from fluxplain.schemas import FIRST_INCARNATION, Change, Incarnation
from fluxplain.schemas.change import change_id
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.record import Timestamp


class Shift(NamedTuple):
    """A signal before and after a change.

    Attributes
    ----------
    before, after
        The numbers before (None without any) and after the likeliest position of the change.
    inflation
        Ratio of the variance of their means to that of means of independent numbers.
    after_seq, replay_seq
        First seq of ``after``, and of twice as many numbers.
    earliest_seq
        Lower bound of the change: of the detector ``"glr"`` in nine of ten cases; the first
        number in ADWIN's shrunk window; for others, the first one after the previous change.
    loss_before, loss_after
        Mean loss of these observations; None without any.
    """

    before: Part | None
    after: Part
    inflation: float
    after_seq: int
    replay_seq: int
    earliest_seq: int
    loss_before: float | None
    loss_after: float | None


class SignalWatch:
    """Feeds a detector, and estimates the shift of the signal when it alarms.

    Examples
    --------
    >>> watch = SignalWatch(DetectorSettings("increment", "glr", {}), seed="")
    >>> [seq for seq in range(600) if watch.update(seq, float(seq >= 500), loss=None)]
    [511]
    """

    def __init__(self, settings: DetectorSettings, seed: str) -> None:
        self.signal = settings.signal
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

    def update(self, seq: int, number: float, loss: float | None) -> Shift | None:
        """Take the number and the loss of observation ``seq``; return the shift at an alarm."""
        adwin = self._detector if self._is_adwin else None
        glr = self._detector if self._is_glr else None
        self._windows.add(seq, number, loss)
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
        return Shift(
            older and older.part,
            newer.part,
            inflation=glr.inflation if glr else 1.0,
            after_seq=newer.seq,
            replay_seq=replay_seq,
            earliest_seq=min(earliest_seq, newer.seq),
            loss_before=older and older.mean_loss,
            loss_after=newer.mean_loss,
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
            id=change_id(stream, "drift", feature, method, seq, incarnation),
            stream=stream,
            kind="drift",
            seq=seq,
            previous_seq=None,
            ts=ts,
            feature=feature,
            method=method,
            detail="",
            signal=self.signal,
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
