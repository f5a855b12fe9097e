"""Decides which changes become alerts."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Literal

from fluxplain.config import AlertSettings
from fluxplain.schemas import Change

Reason = Literal["kind", "method", "feature", "min_effect", "quiet_s", "repeated"]
"""Why a change is no alert: the setting that excludes it, or an earlier alert of that change."""

MAX_REMEMBERED = 10_000
"""Latest alerts and quiet times to remember: a few MB."""


class AlertFilter:
    """Decides about changes one by one.

    A change repeated after a crash, with the same id, gives no second alert. After an alert at time
    t, changes of the same subject before t + ``quiet_s`` are held back; they do not prolong the
    quiet time. A subject is the kind of the change together with a stream's feature (the loss
    counts as one), or an incident. Times are Kafka's timestamps of the changes, so that a lagging
    reader decides the same.

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
        """Return why a change with a timestamp becomes no alert; None if it becomes one."""
        unwanted = self._unwanted(change)
        if unwanted is not None:
            return unwanted
        if change.id in self._delivered:
            return "repeated"
        quiet = any(at_s < self._quiet_until.get(each, at_s) for each in _subjects(change))
        return "quiet_s" if quiet else None

    def delivered(self, change: Change, at_s: float) -> None:
        """Record a delivered alert and start its quiet time."""
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
        effect = change.effect_size
        return "min_effect" if effect is not None and effect < wanted.min_effect else None


def _subjects(change: Change) -> Iterator[str]:
    yield f"{change.kind} {change.stream} {change.feature or change.method}"
    if change.incident is not None:
        yield f"incident {change.incident}"


def _remember(memory: OrderedDict[str, Any], key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
