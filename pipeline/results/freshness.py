"""How long ago the newest result came."""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class Freshness:
    """When the newest result was published, and when the newest live one came.

    ``published_at`` is a timestamp of Kafka, in milliseconds since 1970, 0 if unknown;
    ``arrived_at`` a time of the monotonic clock.
    """

    published_at: int = 0
    arrived_at: float | None = None

    def note(self, published_at: int, now: float | None) -> None:
        """Take the times of a result; ``now`` is None if it is from the past."""
        self.published_at = max(self.published_at, published_at)
        self.arrived_at = self.arrived_at if now is None else now

    def quiet_s(self) -> float:
        """Return the seconds since the newest result; 0 if unknown.

        Once results come live, clocks of other machines do not count.
        """
        if self.arrived_at is not None:
            return time.monotonic() - self.arrived_at
        return max(time.time() - self.published_at / 1e3, 0.0) if self.published_at else 0.0
