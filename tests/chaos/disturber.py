"""Carries out the schedule, and counts what was really done."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.kafka import Cluster
from pipeline.supervisor import Supervisor, describe_status
from tests.chaos.exits import Stop
from tests.chaos.schedule import Disturbance, Kind

IN_SYNC_TIMEOUT_S = 90.0
"""How long a broker that came back may take until it has all that it missed."""

COUNTED: dict[str, tuple[Kind, ...]] = {
    "worker kills": ("kill",),
    "broker kills": ("broker-kill",),
    "rebalances": ("add", "remove"),
    "pauses": ("pause",),
}


class Disturber:
    """Does what is due, each time it is called.

    Parameters
    ----------
    schedule
        What to do, and when.
    workers, cluster
        Whom to do it to.
    tell
        Called with a sentence for each thing that is done.

    Attributes
    ----------
    done
        Kind → how often it was really done.
    killed
        Names of the workers that were killed, once for each time.
    removed
        How those that were removed ended.
    """

    def __init__(
        self,
        schedule: Sequence[Disturbance],
        workers: Supervisor,
        cluster: Cluster,
        *,
        tell: Callable[[str], None],
    ) -> None:
        self._due = list(schedule)
        self._wanted = Counter(each.kind for each in schedule)
        self._workers = workers
        self._cluster = cluster
        self._tell = tell
        self._paused: dict[str, tuple[float, float]] = {}
        self._background = ThreadPoolExecutor(1, "broker")
        self._outage: Future[None] | None = None
        self._closing = Event()
        self.done: Counter[Kind] = Counter()
        self.killed: list[str] = []
        self.removed: list[Stop] = []

    def tick(self, elapsed_s: float) -> None:
        """Do what is due; what cannot be done yet is tried again at the next call."""
        self._workers.check()
        self._wake()
        self._see_outage()
        for each in [each for each in self._due if each.at_s <= elapsed_s]:
            if self._do(each):
                self._due.remove(each)

    def finished(self) -> bool:
        """Return whether everything was done, and nothing is down or paused any more."""
        return not (self._due or self._paused or self._outage)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return name → (how often it was done, how often it was to be done)."""
        return {
            name: (
                sum(self.done[kind] for kind in kinds),
                sum(self._wanted[kind] for kind in kinds),
            )
            for name, kinds in COUNTED.items()
        }

    def close(self) -> None:
        """Leave nothing paused; do not wait for a broker that is away."""
        self._closing.set()
        for name in list(self._paused):
            self._continue(name)
        self._background.shutdown()

    def _do(self, each: Disturbance) -> bool:
        if each.kind == "broker-kill":
            return self._start_outage(each)
        if each.kind == "add":
            self._tell(f"added {self._workers.add(each.role)}")
            self.done["add"] += 1
            return True
        names = self._workers.running(each.role).keys() - self._paused.keys()
        if not names or (each.kind == "remove" and len(names) < 2):
            return False  # until the supervisor has started one again
        name = each.choose(sorted(names))
        if each.kind == "kill":
            self._tell(f"killed {name} ({self._workers.running()[name]})")
            self._workers.kill(name)
            while name in self._workers.running():
                time.sleep(0.01)  # else it could be killed twice
            self.killed.append(name)
            self.done["kill"] += 1
        elif each.kind == "remove":
            outage = self._outage is not None
            status = self._workers.remove(name)
            self.removed.append(Stop(status, outage))
            self._tell(f"removed {name}: {describe_status(status)}")
            self.done["remove"] += 1
        else:
            self._tell(f"paused {name} for {each.lasts_s:.1f} s")
            self._workers.kill(name, signal.SIGSTOP)
            self._paused[name] = (time.monotonic(), each.lasts_s)
        return True

    def _wake(self) -> None:
        for name, (since, lasts_s) in list(self._paused.items()):
            if time.monotonic() - since >= lasts_s:
                self._continue(name)
                self.done["pause"] += 1

    def _continue(self, name: str) -> None:
        del self._paused[name]
        self._workers.kill(name, signal.SIGCONT)
        self._tell(f"{name} goes on")

    def _start_outage(self, each: Disturbance) -> bool:
        if self._outage:
            return False  # one at a time: the cluster must stay available
        self._tell(f"killed broker {each.node} for {each.lasts_s:.1f} s")
        self._cluster.kill_broker(each.node)
        self._outage = self._background.submit(self._bring_back, each)
        return True

    def _bring_back(self, each: Disturbance) -> None:
        if self._closing.wait(each.lasts_s):
            return
        self._cluster.start_broker(each.node)
        deadline = time.monotonic() + IN_SYNC_TIMEOUT_S
        while not in_sync(self._cluster.bootstrap_servers):
            if time.monotonic() > deadline:
                raise TimeoutError(f"broker {each.node} did not catch up after its restart")
            if self._closing.wait(0.5):
                return

    def _see_outage(self) -> None:
        if self._outage and self._outage.done():
            self._outage.result()
            self._outage = None
            self.done["broker-kill"] += 1
            self._tell("the broker is back, and in sync")


def in_sync(bootstrap_servers: str, topics: Collection[str] = ()) -> bool:
    """Return whether every replica of every partition has all of it, and these topics are there.

    Of several brokers one answers, whichever it is.
    """
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        known = admin.list_topics(timeout=5.0).topics
    except KafkaException:
        return False
    partitions = [each for topic in known.values() for each in topic.partitions.values()]
    return known.keys() >= set(topics) and all(
        len(each.isrs) == len(each.replicas) for each in partitions
    )
