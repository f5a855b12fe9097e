"""Rate-limited log warnings about dead letters."""

import logging

from fluxplain.schemas import DeadLetter

log = logging.getLogger("fluxplain.worker")

PAUSE_S = 60.0
"""Seconds between two warnings: a changed producer can make every record a dead letter."""

LONGEST = 300
"""Longest reason in a warning, in characters."""


class DeadLetterLog:
    """Counts the dead letters of a worker, and logs their number and the latest reason."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._count = 0
        self._logged_at: float | None = None

    def see(self, letter: DeadLetter, now: float) -> None:
        """Count a dead letter; warn if the last warning is long ago. ``now`` is monotonic."""
        self._count += 1
        if self._logged_at is not None and now - self._logged_at < PAUSE_S:
            return
        reason = letter.reason[:LONGEST]
        log.warning("%s: %d dead letters; the latest: %s", self._who, self._count, reason)
        self._count, self._logged_at = 0, now
