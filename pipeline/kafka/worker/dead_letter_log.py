"""Rate-limited log warnings about dead letters, for people who watch no topic."""

import logging

from fluxplain.schemas import DeadLetter

log = logging.getLogger("fluxplain.worker")

PAUSE_S = 60.0
"""Seconds between two warnings: a producer that has changed makes every record a dead letter."""

LONGEST = 300
"""Characters of a reason."""


class DeadLetterLog:
    """Counts the dead letters of a worker, and warns of many at once."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._count = 0
        self._logged_at: float | None = None

    def see(self, letter: DeadLetter, now: float) -> None:
        """Count one, and warn if the last warning is long ago; ``now`` is of a monotonic clock."""
        self._count += 1
        if self._logged_at is not None and now - self._logged_at < PAUSE_S:
            return
        reason = letter.reason[:LONGEST]
        log.warning("%s: %d to dead-letters; the newest: %s", self._who, self._count, reason)
        self._count, self._logged_at = 0, now
