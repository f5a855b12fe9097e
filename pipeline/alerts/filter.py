"""Decides which changes become alerts."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from fluxplain.alerts.alerted_incidents import AlertedIncidents
from fluxplain.config import AlertSettings
from fluxplain.results.notes import Notes
from fluxplain.results.severity import is_at_least, severity
from fluxplain.schemas import Change

Setting = Literal[
    "kind",
    "method",
    "feature",
    "status",
    "cause",
    "learning",
    "mute",
    "min_severity",
    "min_effect",
    "quiet_s",
]

Reason = Literal[Setting, "repeated", "incident", "unknown"]
"""Why a change is no alert: the setting that excludes it, an earlier alert of that change or of its
incident, or that nobody was told when it was noticed."""

MAX_REMEMBERED = 10_000
"""Latest alerts and quiet times to remember: a few MB."""


class AlertFilter:
    """Decides about changes one by one.

    A record repeated after a crash gives no second alert. What became of a change is sent if there
    was an alert when it was noticed, since this process began; or if ``"noticed"`` is not among the
    statuses to send. An incident gives one alert, and another one if it becomes more urgent; until
    a record says that the change of the alert did not last, and for six hours by ``clock``. Which
    changes belong to it, with a ``window`` in observations, says :class:`AlertedIncidents`. After
    an alert at time t, changes of the same subject before t + ``quiet_s`` are held back; they do
    not prolong the quiet time. A subject is the kind of the change together with a stream's feature
    (the loss counts as one). Times are Kafka's timestamps of the changes, so that a lagging reader
    decides the same. Changes of features that people have muted are held back, from when their note
    is known.

    Examples
    --------
    >>> gap = Change.notice(kind="gap", stream="features-0", seq=7, detail="some were lost")
    >>> alerts = AlertFilter(AlertSettings(kinds=["gap", "drift"]))
    >>> alerts.objection(gap, at_s=0.0)
    >>> alerts.delivered(gap, at_s=0.0)
    >>> alerts.objection(gap, at_s=0.0)
    'repeated'
    """

    def __init__(
        self,
        settings: AlertSettings,
        notes: Notes | None = None,
        window: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._notes = notes or Notes()
        self._delivered: OrderedDict[str, None] = OrderedDict()
        self._incidents = AlertedIncidents(window, clock)
        self._quiet_until: OrderedDict[str, float] = OrderedDict()

    def objection(self, change: Change, at_s: float) -> Reason | None:
        """Return why a change with a timestamp becomes no alert; None if it becomes one."""
        if not change.is_step:
            self._incidents.forget(change)
        unwanted = self._unwanted(change, at_s)
        if unwanted is not None:
            return unwanted
        if change.event_id in self._delivered:
            return "repeated"
        if change.is_follow_up and "noticed" in self._settings.statuses:
            return None if change.id in self._delivered else "unknown"
        known = (each.severity for each in self._incidents.of(change))
        if any(is_at_least(each, severity(change)) for each in known):
            return "incident"
        quiet = at_s < self._quiet_until.get(_subject(change), at_s)
        return "quiet_s" if quiet else None

    def delivered(self, change: Change, at_s: float) -> None:
        """Record a delivered alert and start its quiet time."""
        _remember(self._delivered, change.event_id, None)
        _remember(self._quiet_until, _subject(change), at_s + self._settings.quiet_s)
        if change.is_step:
            self._incidents.add(change)

    def _unwanted(self, change: Change, at_s: float) -> Setting | None:
        """Return the setting that excludes a change, or the mute by a note."""
        wanted, effect = self._settings, change.effect_size
        features, feature, cause = wanted.features, change.feature, change.cause
        # what was sent may have become small
        was_sent = change.is_follow_up and "noticed" in wanted.statuses
        is_urgent = change.is_notice or is_at_least(severity(change), wanted.min_severity)
        is_small = effect is not None and effect < wanted.min_effect
        excluded: dict[Setting, bool] = {
            "kind": change.kind not in wanted.kinds,
            "method": change.method is not None and change.method not in wanted.methods,
            "feature": bool(features and feature and feature not in features),
            "status": change.status is not None and change.status not in wanted.statuses,
            "cause": cause is not None and cause.kind not in wanted.causes,
            "learning": change.learning and not wanted.learning,
            "mute": feature in wanted.mute or self._notes.hides(change, at_s),
            "min_severity": not was_sent and not is_urgent,
            "min_effect": not was_sent and is_small,
        }
        return next((setting for setting, is_excluded in excluded.items() if is_excluded), None)


def _subject(change: Change) -> str:
    return f"{change.kind} {change.stream} {change.feature or change.method}"


def _remember(memory: OrderedDict[str, Any], key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
