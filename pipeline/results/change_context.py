"""Collects the records around one change in bounded memory, for its figure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluxplain.drift.windows import Part
from fluxplain.results.series import Series
from fluxplain.results.stream_results import Key
from fluxplain.schemas import Change, Explanation, Prediction
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import is_moderate

CONTEXT = 1_000
"""Fewest observations shown before and after a change: about the memory of a smoothing rate of
0.001."""

LEVELS = (
    *("before", "after", "before_std_error", "after_std_error"),
    *("loss_before", "loss_after"),
)
"""Fields of a change that are plotted."""

MAX_BINS = 60
"""Most bins in a plot; more could not be distinguished."""


NOTHING = Part(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Window:
    """Observations around a change, as seqs: those shown are from ``begin`` to ``end``.

    ``since`` is the oldest that the detector's mean before can include. ``before`` and ``after``
    begin two equally long runs to compare, if there are enough observations; the second run ends at
    ``seen``, where the change was detected.
    """

    begin: int
    since: int
    before: int
    after: int
    seen: int
    end: int

    @classmethod
    def of(cls, change: Change) -> "Window":
        """Return the window of a change."""
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
    """Means of neighbouring observations; one bin begins at the change."""

    def __init__(self, window: Window) -> None:
        self.width = -(-(window.end - window.begin) // MAX_BINS)
        self._window = window
        self._bins: dict[int, Part] = {}

    def add(self, seq: int, number: float) -> None:
        """Include the number of one observation."""
        place = (seq - self._window.after) // self.width
        self._bins[place] = self._bins.get(place, NOTHING).with_number(number)

    def __iter__(self) -> Iterator[tuple[float, Part]]:
        """Yield middle and numbers of each bin whose middle is in the window.

        Other bins hold few observations.
        """
        for i in sorted(self._bins):
            middle = self._window.after + (i + 0.5) * self.width - 0.5
            if self._window.begin <= middle <= self._window.end:
                yield middle, self._bins[i]


@dataclass(slots=True)
class Move:
    """A feature's mean increments before and after a change."""

    feature: str
    before: Part = NOTHING
    after: Part = NOTHING

    @property
    def difference(self) -> float:
        """Mean after minus mean before."""
        return self.after.mean - self.before.mean

    @property
    def std_error(self) -> float:
        """Standard error of the difference, assuming independent increments."""
        errors = self.before.std_error, self.after.std_error
        return math.hypot(*(math.inf if error is None else error for error in errors))


class ChangeContext:
    """Collects the records around a drift of an explanation, the loss or the wrong predictions.

    ``increments`` are those of the explanation, or the errors (1 where wrong, else 0).
    """

    def __init__(self, change: Change) -> None:
        levels = {name: getattr(change, name) for name in LEVELS}
        # the record is untrusted, and huge numbers cannot be plotted
        large: dict[str, Any] = {
            name: None for name, level in levels.items() if level and not is_moderate(level)
        }
        self.change = replace(change, **large)
        self.window = Window.of(change)
        self.trend = Series()
        self.increments = Bins(self.window)
        self.losses = Bins(self.window)
        self._moves: dict[Key, Move] = {}
        self._read: dict[Key, int] = {}

    def add(self, record: Prediction | Explanation) -> None:
        """Add a record that is no duplicate; those of other streams are ignored."""
        if record.stream != self.change.stream or record.seq < self.window.begin:
            return
        if isinstance(record, Explanation):
            self._add_explanation(record)
        elif record.loss is not None and record.seq <= self.window.end and is_moderate(record.loss):
            self.losses.add(record.seq, record.loss)
            if self.change.signal == "error":
                self.increments.add(record.seq, record.error)

    def moves(self, method: Method) -> list[Move]:
        """Return the moves of features with a mean before and after, the largest first."""
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
            self.trend.add(e.seq, e.value, e.std_error)
        # a restarted explainer may repeat increments together with new ones
        read = self._read.get(key, -1)
        self._read[key] = e.seq
        for seq, increment in zip(e.seqs, e.increments, strict=True):
            is_shown = self.window.begin <= seq <= self.window.end
            if read < seq and is_shown and is_moderate(increment):
                self._add_increment(key, seq, increment)

    def _add_increment(self, key: Key, seq: int, increment: float) -> None:
        window = self.window
        if key == (self.change.feature, self.change.method):
            self.increments.add(seq, increment)
        if window.before <= seq <= window.seen:
            move = self._moves.setdefault(key, Move(key[0]))
            if seq < window.after:
                move.before = move.before.with_number(increment)
            else:
                move.after = move.after.with_number(increment)


def strongest(changes: Sequence[Change], most: int) -> list[Change]:
    """Return the drifts whose means differ by most standard errors, in their original order.

    If the means have no standard errors, the explanation's is used.
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
