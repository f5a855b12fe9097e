"""Carries out the schedule, and counts what was really done."""

import queue
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import describe_status
from tests.kit.kafka_topics import set_topic
from tests.kit.workers import Workers
from tests.measure.chaos.exits import Stop
from tests.measure.chaos.faults import Aside, Foreigners, add_partition
from tests.measure.chaos.poison import Poisoner
from tests.measure.chaos.recovery import Recoveries
from tests.measure.chaos.schedule import Disturbance, Kind

IN_SYNC_TIMEOUT_S = 300.0
"""Seconds that brokers may take to catch up after a restart: the copies of a topic that refuses
writes cannot while it does."""

IN_SYNC, TOO_MANY = "2", "4"
"""`min.insync.replicas` of three copies: as it is, and so that every write is refused."""

COUNTED: dict[str, tuple[Kind, ...]] = {
    "worker kills": ("kill",),
    "broker kills": ("broker-kill",),
    "rebalances": ("add", "remove"),
    "pauses": ("pause",),
    "outages of writes": ("outage",),
    "frozen across an outage": ("freeze",),
    "all killed at once": ("all-kill",),
    "partitions added": ("partitions",),
    "poison": ("poison",),
    "bombs": ("bomb",),
    "foreign workers": ("foreign",),
}

RECOVERED = {"kill", "broker-kill", "all-kill", "pause", "freeze", "outage"}
"""Kinds of which is measured how soon every role commits again: after a kill of a worker from then
on, else from the end of the fault."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What carries out what is not done to workers and brokers.

    `grown` are the topics that get the same new partition; `new_partition` is called with it when
    all of them have it. Nothing waits for a broker any more when `closing` is set.
    """

    poisoner: Poisoner
    foreigners: Foreigners
    recoveries: Recoveries
    grown: Sequence[str]
    new_partition: Callable[[int], None]
    closing: Event


class Disturber:
    """Does what is due, each time it is called, and tells of it.

    Attributes
    ----------
    done
        Kind → how often it was really done.
    killed, removed
        Names of the workers that were killed, once for each time; and how those that were removed
        ended.
    """

    def __init__(
        self,
        schedule: Sequence[Disturbance],
        workers: Workers,
        cluster: Cluster,
        faults: Faults,
        *,
        tell: Callable[[str], None],
    ) -> None:
        self._due = list(schedule)
        self._wanted = Counter(each.kind for each in schedule)
        self._workers, self._cluster, self._faults = workers, cluster, faults
        self._tell = tell
        self._paused: dict[str, tuple[float, Disturbance]] = {}
        self._refused: tuple[float, Disturbance] | None = None
        self._down: Disturbance | None = None
        self._added: queue.Queue[int] = queue.Queue()
        self._brokers = Aside("broker")
        self._aside = {name: Aside(name) for name in ("poison", "partitions", "foreign")}
        self.done: Counter[Kind] = Counter()
        self.killed: list[str] = []
        self.removed: list[Stop] = []

    def tick(self, elapsed_s: float) -> None:
        """Do what is due; what cannot be done yet is tried again at the next call."""
        self._workers.check()
        self._wake()
        self._see_brokers()
        self._see_refused_writes()
        self._see_others()
        for each in [each for each in self._due if each.at_s <= elapsed_s]:
            if self._do(each):
                self._due.remove(each)

    def finished(self) -> bool:
        others = [each.is_done() for each in self._aside.values()]
        return not (self._due or self._paused or self._down or self._refused) and all(others)

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
        self._faults.closing.set()
        for each in self._aside.values():
            each.close()
        for name in list(self._paused):
            self._continue(name)
        self._brokers.close(wait=True)

    def _do(self, each: Disturbance) -> bool:
        if each.kind in {"broker-kill", "all-kill"}:
            return self._kill_brokers(each)
        if each.kind == "outage":
            return self._refuse_writes(each)
        if each.kind in {"partitions", "poison", "bomb", "foreign"}:
            self._do_aside(each)
            return True
        if each.kind == "add":
            self._tell(f"added {self._workers.add(each.role)}")
            self.done["add"] += 1
            return True
        names = self._workers.running(each.role).keys() - self._paused.keys()
        if not names or (each.kind == "remove" and len(names) < 2):
            return False  # until the supervisor has started one again
        self._do_to(each.choose(sorted(names)), each)
        return True

    def _do_to(self, name: str, each: Disturbance) -> None:
        if each.kind == "kill":
            self._tell(f"killed {name} ({self._workers.running()[name]})")
            self._kill([name])
            self._over("kill")
        elif each.kind == "remove":
            stop = Stop(self._workers.remove(name), bool(self._down or self._refused))
            self.removed.append(stop)
            self._tell(f"removed {name}: {describe_status(stop.status)}")
            self._over("remove")
        else:
            self._tell(f"paused {name} for {each.lasts_s:.1f} s")
            self._workers.kill(name, signal.SIGSTOP)
            self._paused[name] = (time.monotonic(), each)

    def _kill(self, names: Sequence[str]) -> None:
        self._workers.crash(*names)
        self.killed += names

    def _wake(self) -> None:
        for name, (since, each) in list(self._paused.items()):
            if time.monotonic() - since >= each.lasts_s:
                self._continue(name)
                self._over(each.kind)

    def _over(self, kind: Kind) -> None:
        self.done[kind] += 1
        if kind in RECOVERED:
            self._faults.recoveries.since(kind)

    def _continue(self, name: str) -> None:
        del self._paused[name]
        self._workers.kill(name, signal.SIGCONT)
        self._tell(f"{name} goes on")

    def _refuse_writes(self, each: Disturbance) -> bool:
        all_down = self._down is not None and self._down.kind == "all-kill"
        if self._refused or all_down or not self._require(each.topic, TOO_MANY):
            return False
        self._tell(f"writes to {each.topic} are refused for {each.lasts_s:.1f} s")
        self._refused = time.monotonic(), each
        return True

    def _see_refused_writes(self) -> None:
        if self._refused is None:
            return
        since, each = self._refused
        if time.monotonic() - since >= each.lasts_s and self._require(each.topic, IN_SYNC):
            self._tell(f"writes to {each.topic} are accepted again")
            self._refused = None
            self._over("outage")

    def _require(self, topic: str, replicas: str) -> bool:
        """Return whether a broker has answered."""
        try:
            set_topic(self._workers.config, topic, "min.insync.replicas", replicas)
        except (KafkaException, TimeoutError):
            return False
        return True

    def _do_aside(self, each: Disturbance) -> None:
        faults, kind = self._faults, each.kind

        def write() -> None:
            place = faults.poisoner.send(each.topic, each.pick, is_bomb=kind == "bomb")
            self._tell("wrote a {} to {}-{}, offset {}".format(kind, *place))
            self.done[kind] += 1

        def grow() -> None:
            added, rng = faults.poisoner.partitions, random.Random(f"partitions/{each.pick}")
            config = self._workers.config
            add_partition(config, faults.grown, added + 1, rng, faults.closing)
            faults.poisoner.partitions += 1
            self._added.put(added)

        def join() -> None:
            self._tell(f"started a foreign {each.role} worker")
            self._tell(faults.foreigners.start(each.role))
            self.done["foreign"] += 1

        lane = "poison" if kind == "bomb" else kind
        self._aside[lane].do({"partitions": grow, "foreign": join, "poison": write}[lane])

    def _see_others(self) -> None:
        for each in self._aside.values():
            each.is_done()  # raises what went wrong
        while not self._added.empty():
            partition = self._added.get()
            self._tell(f"{', '.join(self._faults.grown)} have a partition {partition}")
            self._faults.new_partition(partition)
            self.done["partitions"] += 1

    def _kill_brokers(self, each: Disturbance) -> bool:
        if self._down:
            return False  # one at a time: the cluster must stay available
        if each.kind == "all-kill" and self._paused:
            return False  # until they have woken up: that is what they are paused for
        if each.kind == "all-kill" and self._refused:
            # after an unclean stop no replica of a partition may lead that had too few in sync
            # (KIP-966): without somebody's decision to lose data, it would stay without a leader
            return False
        if each.kind == "all-kill":
            self._tell(f"killed all brokers, for {each.lasts_s:.1f} s, and all workers")
            self._kill(list(self._workers.running()))
            for node in self._cluster.pids():
                self._cluster.kill_broker(node)
        else:
            self._tell(f"killed broker {each.node} for {each.lasts_s:.1f} s")
            self._cluster.kill_broker(each.node)
        self._down = each
        self._brokers.do(lambda: self._bring_back(each))
        return True

    def _bring_back(self, each: Disturbance) -> None:
        if self._faults.closing.wait(each.lasts_s):
            return
        if each.kind == "all-kill":
            self._cluster.start()
        else:
            self._cluster.start_broker(each.node)
        self._faults.recoveries.since(each.kind)
        deadline = time.monotonic() + IN_SYNC_TIMEOUT_S
        while not in_sync(self._cluster.bootstrap_servers):
            if time.monotonic() > deadline:
                raise TimeoutError("brokers did not catch up after a restart")
            if self._faults.closing.wait(0.5):
                return

    def _see_brokers(self) -> None:
        if self._down and self._brokers.is_done():
            self.done[self._down.kind] += 1
            self._down = None
            self._tell("all brokers are back, and in sync")


def in_sync(bootstrap_servers: str) -> bool:
    """Return whether every replica of every partition has all of it.

    Of several brokers one answers, whichever it is.
    """
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        known = admin.list_topics(timeout=5.0).topics
    except KafkaException:
        return False
    partitions = [each for topic in known.values() for each in topic.partitions.values()]
    return all(len(each.isrs) == len(each.replicas) for each in partitions)
