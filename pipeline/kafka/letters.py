"""Says in the log that records cannot be used: who watches no topic would not know."""

import logging

from schemas import DeadLetter

log = logging.getLogger("fluxplain.worker")

PAUSE_S = 60.0
"""Between two lines: a producer that has changed makes every record a dead letter."""

LONGEST = 300
"""Characters of a reason."""


class LetterLog:
    """Warns of dead letters, of many at once.

    Parameters
    ----------
    who
        The worker's role.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._count = 0
        self._told_at: float | None = None

    def see(self, letter: DeadLetter, now: float) -> None:
        """Count one, and warn if the last warning is long ago.

        Parameters
        ----------
        letter
            What could not be used.
        now
            Seconds, of any clock that only goes forward.
        """
        self._count += 1
        if self._told_at is not None and now - self._told_at < PAUSE_S:
            return
        reason = letter.reason[:LONGEST]
        log.warning("%s: %d to dead-letters; the newest: %s", self._who, self._count, reason)
        self._count, self._told_at = 0, now
