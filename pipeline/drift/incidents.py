"""Ranks the features of a stream at each change, and groups changes into incidents.

Several workers make the explanations of a stream's features, so they arrive in any order. Ranks and
incidents must not depend on it: they wait until every feature has reached the same seq.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.follow_up import OpenChanges, Outcome, Series
from fluxplain.drift.history import ThinnedHistory
from fluxplain.schemas import Change, Incarnation
from fluxplain.schemas.change import Curve
from fluxplain.schemas.methods import Method, Watched

FRAME = 10
"""Observations between two snapshots of all features' means. A feature ahead of the others takes
about 100 bytes per snapshot and method."""

Means = dict[Watched | None, dict[str, float]]
"""Method → feature → mean of the signal."""


Course = deque[tuple[int, float]]
"""(frame, mean), in order: the frames that the other features have not reached."""


class Followed(NamedTuple):
    """The outcome of a change, and the curve of the observations after it."""

    series: Series
    incarnation: Incarnation
    outcome: Outcome
    curve_after: Curve | None


class Incidents:
    """The changes of one stream; those within ``window`` observations form an incident.

    Changes with an effect below ``min_effect`` are left out, and add up.

    Examples
    --------
    >>> incidents = Incidents(["a", "b"], window=100)
    >>> for seq in range(0, 50, 10):
    ...     incidents.note("a", "ipfi", seq, mean=0.5)
    ...     incidents.note("b", "ipfi", seq, mean=0.2)
    >>> incidents.advance("a", 50), incidents.advance("b", 49)
    ([], [])
    """

    def __init__(self, explained: Iterable[str], window: int, min_effect: float = 0.0) -> None:
        self._progress = dict.fromkeys(explained, -1)
        self._reached = -1
        self._window, self._gate = window, EffectGate(min_effect)
        self._open = OpenChanges()
        # changes without ranks and incident, and outcomes, by the seq of their explanation
        self._drafts: list[tuple[int, Change | Followed]] = []
        self._courses: dict[tuple[Method, str], Course] = {}
        self._means: Means = {}
        self._past: ThinnedHistory[Means] = ThinnedHistory()
        self._began: int | None = None  # seq of the incident's first change
        self._name = ""

    def note(self, feature: str, method: Method, seq: int, mean: float) -> None:
        """Record a detector's mean after the explanation with this seq."""
        course = self._courses.setdefault((method, feature), deque())
        frame = seq // FRAME
        if course and course[-1][0] >= frame:
            frame, _ = course.pop()  # an explainer that restarted may be in an earlier frame
        course.append((frame, mean))

    @property
    def reached(self) -> int:
        """Seq that all features have reached; -1 at the start."""
        return self._reached

    @property
    def oldest(self) -> int:
        """Up to here all features have come, and no change before it is still to come out."""
        return min([self._reached, *(_seq_of(draft) for _, draft in self._drafts)])

    def add(self, seq: int, change: Change | Followed) -> None:
        """Take a change or an outcome, found in the explanation with this seq."""
        insort(self._drafts, (seq, change), key=itemgetter(0))

    def advance(self, feature: str, seq: int) -> list[Change]:
        """Record a feature's progress; return the changes that all features have reached."""
        before = self._progress[feature]
        if seq <= before:  # of another method, perhaps with a change
            return self._release(self._reached)
        self._progress[feature] = seq
        if before > self._reached:
            return []
        self._reached = min(self._progress.values())
        ready: list[Change] = []
        end = self._reached // FRAME
        while (frame := self._next_frame(end)) < end:
            ready += self._release((frame + 1) * FRAME - 1)
            self._close(frame)
        return ready + self._release(self._reached)

    def _next_frame(self, end: int) -> int:
        """Return the first frame in which a mean has changed, at most ``end``."""
        return min([end, *(course[0][0] for course in self._courses.values() if course)])

    def _release(self, seq: int) -> list[Change]:
        """Return the changes up to a seq, in order."""
        ready = []
        while self._drafts and self._drafts[0][0] <= seq:
            at, draft = self._drafts.pop(0)
            change = self._followed(draft) if isinstance(draft, Followed) else self._new(at, draft)
            if change is not None:
                ready.append(change)
        return ready

    def _new(self, seq: int, change: Change) -> Change | None:
        """Return a change with all that is known, or None if it is too small.

        ``seq`` is that of its explanation.
        """
        passed = self._gate.passed(change, self._others(change.feature, change.method))
        if passed is None:
            return None
        if self._began is None or seq - self._began > self._window:
            self._began, self._name = seq, f"{change.stream}@{seq}"
        then = self._past.at((passed.after_seq or 0) // FRAME - 1)
        rank_before, _ = _rank(passed, passed.before, then or {})
        change = self._completed(replace(passed, incident=self._name, rank_before=rank_before))
        self._open.add(change)
        return change

    def _followed(self, followed: Followed) -> Change | None:
        """Return the second record of a change; None if its first one was not published."""
        series, incarnation, outcome, curve_after = followed
        feature, method, _ = series
        others = self._others(feature, method)
        change = self._open.completed(series, incarnation, outcome, others)
        return change and self._completed(replace(change, curve_after=curve_after))

    def _close(self, frame: int) -> None:
        """Add the means at the end of a frame to the history."""
        means = {method: dict(features) for method, features in self._means.items()}
        for (method, feature), course in self._courses.items():
            if course and course[0][0] == frame:
                means.setdefault(method, {})[feature] = course.popleft()[1]
        self._means = means
        self._past.add(frame, means)

    def _others(self, feature: str | None, method: Watched | None) -> float:
        """Return the sum of the absolute means of a method's other features."""
        known = self._means.get(method, {}).items()
        # exact, since features become known in any order
        return math.fsum(abs(mean) for name, mean in known if name != feature)

    def _completed(self, change: Change) -> Change:
        """Return a change with its rank now."""
        rank_after, ranked = _rank(change, change.after, self._means)
        return replace(change, rank_after=rank_after, ranked=ranked)


def _seq_of(draft: Change | Followed) -> int:
    return draft.outcome.status_seq if isinstance(draft, Followed) else draft.seq


def _rank(change: Change, mean: float | None, means: Means) -> tuple[int | None, int | None]:
    """Return the rank of a mean among all features, 1 for the largest, and their number."""
    known = means.get(change.method, {})
    others = [other for name, other in known.items() if name != change.feature]
    if mean is None or not others or change.signal == "trend":
        return None, None
    return 1 + sum(other > mean for other in others), 1 + len(others)
