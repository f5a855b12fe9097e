"""Finds changes of the distribution of numbers, or of categories."""

import math
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.follow_up import MOST_OPEN, FollowUp, Outcome, Shift
from fluxplain.drift.glr import GLR
from fluxplain.drift.share_history import MOST_CHARACTERS, ShareHistory, Shares
from fluxplain.drift.signal_watch import SignalWatch, compared
from fluxplain.schemas.change import Signal
from fluxplain.schemas.record import Value

OF_NUMBERS, OF_SHARES = 2, 5
"""Detectors of one distribution, which share its false alarms."""

AS_DEVIATION = math.sqrt(math.pi) / 2.0
"""Standard deviation of independent normal numbers, as a multiple of their mean difference."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of this, without their integer parts, fill the unit interval evenly."""

REFERENCE = 256
"""First observations, whose frequencies decide which categories are rare."""

RARE = 0.02
"""Share of all observations that the rare categories have together; unknown ones are rare, too."""

MOST_PLACES = 64
"""Categories whose places are evenly spread, in order of arrival; further ones get random places.

Evenly spread places vary less from one observation to the next. With ids, which never repeat, many
such places would become the detector's normal, and the random ones after them look like a change.
"""

Found = tuple[Outcome | Shift, "SignalWatch | ShareWatch"]
"""A finding, and the watch that made it."""


class NumberDistribution:
    """Watches the mean of numbers, and their spread: how much successive numbers differ.

    A step of the mean affects a single difference, so it does not count as a change of the spread.

    Examples
    --------
    >>> import random
    >>> rng, found = random.Random(1), []
    >>> numbers = NumberDistribution(false_alarms=0.1, follow_up=1000)
    >>> for seq in range(0, 1200, 8):
    ...     values = [rng.gauss(0.0, 1.0 if seq < 800 else 3.0) for _ in range(8)]
    ...     found += numbers.update_block(range(seq, seq + 8), values)
    >>> [(watch.signal, shift.after_seq) for shift, watch in found]
    [('spread', 800)]
    """

    def __init__(self, false_alarms: float, follow_up: int) -> None:
        parameters = {"false_alarms": false_alarms / OF_NUMBERS}
        mean = DetectorSettings("mean", "glr", parameters)
        spread = DetectorSettings("spread", "glr", parameters)
        self._mean, self._spread = (SignalWatch(each, "", follow_up) for each in (mean, spread))
        self._last: float | None = None

    def update_block(self, seqs: Sequence[int], numbers: Sequence[float]) -> Iterator[Found]:
        """Process one block of numbers; yield findings."""
        earlier = [numbers[0] if self._last is None else self._last, *numbers]
        self._last = numbers[-1]
        differences = [
            AS_DEVIATION * abs(number - last)
            for last, number in zip(earlier, numbers, strict=False)
        ]
        for watch, values in ((self._mean, numbers), (self._spread, differences)):
            for _, found in watch.update_run(seqs, values):
                yield found, watch


class ShareWatch:
    """Watches shares of categories, or predicted probabilities of classes.

    The number of detectors does not depend on the number of categories. Three watch the shares of
    the most frequent categories, one the share of all that were rare or unknown at first. One
    watches the others: each has a fixed place in the unit interval, and the mean place moves if
    shares do. An alarm reports the category whose share moved most.

    ``most_characters`` is as in :class:`~fluxplain.drift.share_history.ShareHistory`.

    Examples
    --------
    >>> shares, found = ShareWatch(false_alarms=0.1, follow_up=1000), []
    >>> for seq in range(0, 1024, 8):
    ...     categories = "abbcabbc" if seq < 600 else "adbcadbc"
    ...     found += shares.update_block(range(seq, seq + 8), [{each: 1.0} for each in categories])
    >>> [(watch.category, shift.before.mean, shift.after_seq) for shift, watch in found]
    [('d', 0.0, 608)]
    """

    signal: ClassVar[Signal] = "share"

    def __init__(
        self, false_alarms: float, follow_up: int, most_characters: float = MOST_CHARACTERS
    ) -> None:
        self._false_alarms = false_alarms / OF_SHARES
        self._length = follow_up
        self._place_of: dict[Value, float] = {}
        self._history = ShareHistory(most_characters)
        self._open: list[tuple[Value, FollowUp]] = []
        self.category: Value | None = None
        self._detectors = self._new_detectors()
        self._common: dict[Value, None] = {}  # the most frequent first; empty until known

    def update_block(self, seqs: Sequence[int], rows: Sequence[Shares]) -> Iterator[Found]:
        """Process :data:`~fluxplain.drift.glr_rows.BLOCK` observations; yield findings."""
        self._history.add(seqs[0], rows)
        for each in [*self._open]:
            category, follow_up = each
            end = bisect_left(seqs, follow_up.last_seq, hi=len(seqs) - 1) + 1
            if follow_up.add_all(seqs[:end], [row.get(category, 0.0) for row in rows[:end]]):
                yield self._outcome(each, seqs[end - 1]), self
        glr = self._alarmed(rows)
        if glr is not None:
            yield from self._shifted(glr, seqs[-1])

    def _alarmed(self, rows: Sequence[Shares]) -> GLR | None:
        """Feed the detectors; return one that found a change, and restart the others."""
        places, rare, *frequent = self._detectors
        places.update_run([_mean(row, self._place) for row in rows])
        if self._common:
            rare.update_run([_mean(row, self._rarity) for row in rows])
            for category, detector in zip(self._common, frequent, strict=False):
                detector.update_run([row.get(category, 0.0) for row in rows])
        elif self._history.n >= REFERENCE:
            self._common = self._history.common(RARE)
        found = next((each for each in self._detectors if each.drift_detected), None)
        if found is not None:
            self._common, self._detectors = {}, self._new_detectors()
            if found is places:  # it does not depend on what was frequent before
                self._detectors[0] = places
        return found

    def _new_detectors(self) -> list[GLR]:
        return [GLR(self._false_alarms) for _ in range(OF_SHARES)]

    def _shifted(self, glr: GLR, seq: int) -> Iterator[Found]:
        """Yield outcomes of follow-ups that end, then the shift of the category that moved most."""
        category = self._history.most_moved(glr.width)
        for each, follow_up in self._open:
            follow_up.note_further(compared(self._history.windows(each), glr))
        if len(self._open) == MOST_OPEN:
            yield self._outcome(self._open[0], seq), self
        shift = compared(self._history.windows(category), glr)
        if shift.before is not None:
            self._open.append((category, FollowUp(shift, seq, self._length)))
        self._history.forget(shift.after.n)
        self.category = category
        yield shift, self

    def _outcome(self, of: tuple[Value, FollowUp], seq: int) -> Outcome:
        """End a follow-up; return the outcome."""
        self._open.remove(of)
        category, follow_up = of
        windows = self._history.windows(category)
        return follow_up.outcome(seq, windows.split_by_mean(rises=not follow_up.shift.rises)[1].seq)

    def _place(self, category: Value) -> float:
        place = self._place_of.get(category)
        if place is None:
            n = len(self._place_of)
            if n == MOST_PLACES:
                return zlib.crc32(repr(category).encode()) * GOLDEN % 1.0
            place = self._place_of[category] = n * GOLDEN % 1.0
        return place

    def _rarity(self, category: Value) -> float:
        return float(category not in self._common)


def _mean(row: Shares, of: Callable[[Value], float]) -> float:
    return sum([share * of(category) for category, share in row.items()])
