"""The pipeline's status, as the broker reports it."""

import time
from dataclasses import dataclass, field

from fluxplain.results.performance import Throughput


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """A role or shard: what it reads, how many messages wait, and when it last made progress.

    ``moved_at`` is a time of the monotonic clock. ``reads_source`` says whether its messages are
    the observations.
    """

    part: str
    topic: str
    lag: int
    moved_at: float
    reads_source: bool

    def stalled_s(self) -> float:
        """Return the seconds for which messages have waited without any progress."""
        return time.monotonic() - self.moved_at if self.lag else 0.0


@dataclass(slots=True)
class PipelineStatus:
    """The pipeline's status; ``throughput`` is that of all streams."""

    read: int = 0
    to_read: int = 0
    is_loaded: bool = False
    roles: list[RoleStatus] = field(default_factory=list)
    trouble: str | None = None
    throughput: Throughput = field(default_factory=Throughput)
