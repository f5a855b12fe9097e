"""A detector over one signal, and the change that it reports."""

from collections import deque
from typing import NamedTuple

from river.drift import ADWIN

from pipeline.detectors import DetectorSettings
from schemas import Change
from schemas.change import Watched
from schemas.record import Timestamp

RECENT = 30
"""Newest numbers that stand for what is now, where the detector does not say since when."""


class Shift(NamedTuple):
    """What a signal was before and after a change, and how many numbers are after it."""

    before: float | None
    after: float
    window: int


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
    >>> [t for t in range(200) if watch.update(float(t >= 100))]
    [127]
    """

    def __init__(self, settings: DetectorSettings, seed: str) -> None:
        self._signal = settings.signal
        self._detector = settings.make(seed)
        self._last_change: int | None = None
        # what other detectors than ADWIN do not tell
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._older_total, self._older = 0.0, 0

    def update(self, number: float) -> Shift | None:
        """Take the next number; return the shift if the detector alarms."""
        if isinstance(self._detector, ADWIN):
            return self._update_adwin(self._detector, number)
        if self._detector.drift_detected:  # it begins anew with this number
            self._recent.clear()
            self._older_total, self._older = 0.0, 0
        if len(self._recent) == RECENT:
            self._older_total += self._recent[0]
            self._older += 1
        self._recent.append(number)
        self._detector.update(number)
        if not self._detector.drift_detected:
            return None
        before = self._older_total / self._older if self._older else None
        return Shift(before, sum(self._recent) / len(self._recent), len(self._recent))

    def _update_adwin(self, adwin: ADWIN, number: float) -> Shift | None:
        total, width = adwin.total + number, adwin.width + 1
        adwin.update(number)
        # ADWIN forgets its detection and its window at the next update: read them now
        if not adwin.drift_detected:
            return None
        before = float((total - adwin.total) / (width - adwin.width))
        return Shift(before, adwin.estimation, int(adwin.width))

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
        before, after, window = shift
        what = method if feature is None else f"{method} of {feature}"
        if before is None:
            how = f"changed to {after:.4g}"
        else:
            how = f"{'rose' if after > before else 'fell'} from {before:.4g} to {after:.4g}"
        return Change(
            stream=stream,
            kind="drift",
            seq=seq,
            previous_seq=previous_seq,
            ts=ts,
            feature=feature,
            method=method,
            signal=self._signal,
            before=before,
            after=after,
            window=window,
            value=value,
            std_error=std_error,
            detail=f"{what} {how}",
        )
