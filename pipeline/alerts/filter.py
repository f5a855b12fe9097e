"""Decides which changes are worth an alert."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Literal

from fluxplain.config import AlertSettings
from fluxplain.schemas import Change

Reason = Literal["kind", "method", "feature", "min_effect", "quiet_s", "repeated"]
"""Why there is no alert: the setting that excludes it, or that there was one already."""

MAX_REMEMBERED = 10_000
"""Newest alerts and quiet times that are remembered: a few MB."""


class AlertFilter:
    """Decides about one change after the other.

    A change that comes again after a crash, with the same id, has no second alert. After an alert
    at time t those of the same subject before t + ``quiet_s`` are held back, and do not make the
    quiet time longer. A subject is a stream's feature (the loss counts as one) with the kind of the
    change, or an incident. Times are those at which Kafka took the changes, so that a reader that
    is behind decides the same.

    Examples
    --------
    >>> gap = Change.notice(kind="gap", stream="features-0", seq=7, detail="some were lost")
    >>> alerts = AlertFilter(AlertSettings(kinds=["gap", "drift"]))
    >>> alerts.objection(gap, at_s=0.0)
    >>> alerts.delivered(gap, at_s=0.0)
    >>> alerts.objection(gap, at_s=0.0)
    'repeated'
    """

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings
        self._delivered: OrderedDict[str, None] = OrderedDict()
        self._quiet_until: OrderedDict[str, float] = OrderedDict()

    def objection(self, change: Change, at_s: float) -> Reason | None:
        """Return why a change that Kafka took at a time has no alert; None if it has one."""
        unwanted = self._unwanted(change)
        if unwanted is not None:
            return unwanted
        if change.id in self._delivered:
            return "repeated"
        quiet = any(at_s < self._quiet_until.get(each, at_s) for each in _subjects(change))
        return "quiet_s" if quiet else None

    def delivered(self, change: Change, at_s: float) -> None:
        """Remember an alert, and begin its quiet time."""
        _remember(self._delivered, change.id, None)
        for subject in _subjects(change):
            _remember(self._quiet_until, subject, at_s + self._settings.quiet_s)

    def _unwanted(self, change: Change) -> Reason | None:
        """Return the setting that excludes a change."""
        wanted = self._settings
        if change.kind not in wanted.kinds:
            return "kind"
        if change.method is not None and change.method not in wanted.methods:
            return "method"
        features = wanted.features
        if features is not None and change.feature is not None and change.feature not in features:
            return "feature"
        size = effect(change)
        return "min_effect" if size is not None and size < wanted.min_effect else None


def effect(change: Change) -> float | None:
    """Return |after - before| as a share of the larger of |before| and |after|.

    It is 0 where nothing changed, at most 1 without a change of sign, and at most 2 with one; None
    where there is no before.

    Examples
    --------
    >>> from dataclasses import replace
    >>> notice = Change.notice(kind="drift", stream="features-0", seq=7, detail="")
    >>> effect(notice), effect(replace(notice, before=0.1, after=0.4))
    (None, 0.75)
    """
    if change.before is None or change.after is None:
        return None
    larger = max(abs(change.before), abs(change.after))
    # divided first: a difference of the largest numbers would be infinite
    return abs(change.after / larger - change.before / larger) if larger else 0.0


def _subjects(change: Change) -> Iterator[str]:
    yield f"{change.kind} {change.stream} {change.feature or change.method}"
    if change.incident is not None:
        yield f"incident {change.incident}"


def _remember(memory: OrderedDict[str, Any], key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
