"""Remembers the incidents that had an alert, for as long as they may have further changes."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from fluxplain.config.alert_settings import Severity
from fluxplain.results.severity import severity
from fluxplain.schemas import Change

MAX_AGE_S = 6.0 * 3600.0
"""Seconds after an alert from which on changes of its incident have an alert of their own."""

MAX_OF_STREAM = 16
"""Latest alerts of a stream to compare a change with: a few incidents, each with its severities."""

MAX_STREAMS = 1000
"""Streams to remember: about 3 MB."""


class AlertedIncident(NamedTuple):
    """An incident with an alert.

    ``name`` is None if the change names no incident, ``seq`` is where it began, and ``at_s`` the
    time of the alert.
    """

    change_id: str
    name: str | None
    seq: int
    severity: Severity
    is_of_input: bool
    at_s: float


class AlertedIncidents:
    """Finds the incidents with an alert to which a change belongs.

    The drift role names the incidents of explanations. Changes of the loss and the predictions name
    none: they belong to one within ``window`` observations. Inputs that change may leave the model
    as it was: what follows them belongs to their incident only if it is a change of inputs, too;
    and inputs that change altogether belong to no incident of the model.

    Examples
    --------
    >>> from dataclasses import replace
    >>> loss = Change.notice(kind="drift", stream="s-0", seq=5_039, detail="", method="loss")
    >>> alerted = AlertedIncidents(window=1_000)
    >>> alerted.add(loss)
    >>> named = replace(loss, seq=5_051, incident="s-0@5051", feature="a", method="ipfi")
    >>> [each.seq for each in alerted.of(named)]
    [5039]
    >>> alerted.of(replace(named, seq=9_000))
    []
    """

    def __init__(self, window: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._window = window
        self._clock = clock
        # by stream and incarnation
        self._known: OrderedDict[tuple[str, str], deque[AlertedIncident]] = OrderedDict()

    def of(self, change: Change) -> list[AlertedIncident]:
        """Return the incidents with an alert to which a change belongs."""
        oldest_s = self._clock() - MAX_AGE_S
        known = self._known.get(_stream(change), ())
        return [each for each in known if each.at_s >= oldest_s and self._is_of(each, change)]

    def add(self, change: Change) -> None:
        """Record an alert about a change; ignored if nothing else can belong to it."""
        if change.incident is None and not _is_nameless(change):
            return
        incident = AlertedIncident(
            change_id=change.id,
            name=change.incident,
            seq=min([change.seq, *(each.seq for each in self.of(change))]),
            severity=severity(change),
            is_of_input=change.kind == "input",
            at_s=self._clock(),
        )
        stream = _stream(change)
        self._known.setdefault(stream, deque(maxlen=MAX_OF_STREAM)).append(incident)
        self._known.move_to_end(stream)
        if len(self._known) > MAX_STREAMS:
            self._known.popitem(last=False)

    def forget(self, change: Change) -> None:
        """Forget the alert about a change that did not last: what follows is news."""
        stream = _stream(change)
        if known := self._known.get(stream):
            kept = (each for each in known if each.change_id != change.id)
            self._known[stream] = deque(kept, maxlen=MAX_OF_STREAM)

    def _is_of(self, incident: AlertedIncident, change: Change) -> bool:
        is_input = change.kind == "input"
        if incident.is_of_input != is_input and (not is_input or severity(change) == "high"):
            return False
        if incident.name is not None and change.incident is not None:
            return incident.name == change.incident
        # an incident has its name from its first explanation
        may_belong = _is_nameless(change) or change.incident is not None
        return may_belong and abs(incident.seq - change.seq) <= self._window


def _is_nameless(change: Change) -> bool:
    """Return whether another role than that of incidents has noticed a change."""
    return change.method == "loss" or change.is_of_distribution


def _stream(change: Change) -> tuple[str, str]:
    return change.stream, change.incarnation
