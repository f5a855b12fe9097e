"""The pipeline's status, as the broker reports it."""

import math
import time
from dataclasses import dataclass, field

from fluxplain.results.freshness import Freshness
from fluxplain.results.performance import Throughput


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """A role or shard: what it reads, how many messages wait, and since when it has not moved.

    ``moved_at`` and ``waits_since`` are times of the monotonic clock; see :class:`~fluxplain.kafka
    .topics.progress.Backlog`. ``reads_source`` says whether it is the first role, which reads the
    observations.
    """

    part: str
    topic: str
    lag: int
    moved_at: float
    reads_source: bool
    waits_since: float = math.inf

    def stalled_s(self) -> float:
        """Return the seconds for which messages have waited without any progress."""
        return time.monotonic() - self.moved_at if self.lag else 0.0

    def waited_s(self) -> float:
        """Return the seconds for which the oldest message has waited, as far as is known."""
        return time.monotonic() - min(self.waits_since, self.moved_at) if self.lag else 0.0


@dataclass(slots=True)
class PipelineStatus:
    """The pipeline's status; ``throughput`` and ``freshness`` are those of all streams.

    ``has_roles`` says that a broker is asked for the roles' lag: none is known before its answer.
    """

    read: int = 0
    to_read: int = 0
    is_loaded: bool = False
    roles: list[RoleStatus] = field(default_factory=list)
    has_roles: bool = False
    trouble: str | None = None
    throughput: Throughput = field(default_factory=Throughput)
    freshness: Freshness = field(default_factory=Freshness)
