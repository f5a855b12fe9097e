"""What the parts of a role's worker share."""

from dataclasses import dataclass, field

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore
from fluxplain.kafka.driver import Driver
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.partition import Assignment


@dataclass(frozen=True, slots=True)
class Context:
    """Settings, connections and assignment of a worker.

    ``registered`` is the register's number of the worker's settings, ``versions`` that of its
    versions.
    """

    config: Config
    replica: Replica
    driver: Driver
    store: CheckpointStore
    outbox: Outbox
    register: Register
    registered: int
    versions: int
    metrics: WorkerMetrics
    assignment: Assignment = field(default_factory=Assignment)
