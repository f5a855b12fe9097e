"""Carries out the schedule, and counts what was really done."""

import queue
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import Supervisor, describe_status
from tests.measure.chaos.exits import Stop
from tests.measure.chaos.faults import Aside, Foreigners, Poisoner, Topics
from tests.measure.chaos.recovery import Recoveries
from tests.measure.chaos.schedule import Disturbance, Kind

IN_SYNC_TIMEOUT_S = 300.0
"""Seconds that brokers may take to catch up after a restart: the copies of a topic that refuses
writes cannot while it does."""

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

    Attributes
    ----------
    topics, poisoner, foreigners, recoveries
        What is done to topics, what is written, who joins, and what is measured.
    joined
        Topics that get the same new partition.
    new_partition
        Called with a partition that all of these have.
    """

    topics: Topics
    poisoner: Poisoner
    foreigners: Foreigners
    recoveries: Recoveries
    joined: Sequence[str]
    new_partition: Callable[[int], None]


class Disturber:
    """Does what is due, each time it is called.

    Parameters
    ----------
    schedule
        What to do, and when.
    workers, cluster
        Whom to do it to.
    faults
        Who does what is not done to these.
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
        faults: Faults,
        *,
        tell: Callable[[str], None],
    ) -> None:
        self._due = list(schedule)
        self._wanted = Counter(each.kind for each in schedule)
        self._workers = workers
        self._cluster = cluster
        self._faults = faults
        self._tell = tell
        self._paused: dict[str, tuple[float, Disturbance]] = {}
        self._refused: tuple[float, Disturbance] | None = None
        self._added: queue.Queue[int] = queue.Queue()
        self._writing, self._growing, self._joining = Aside("poison"), Aside("grow"), Aside("join")
        self._background = ThreadPoolExecutor(1, "broker")
        self._outage: Future[None] | None = None
        self._outage_kind: Kind = "broker-kill"
        self._closing = Event()
        self.done: Counter[Kind] = Counter()
        self.killed: list[str] = []
        self.removed: list[Stop] = []

    def tick(self, elapsed_s: float) -> None:
        """Do what is due; what cannot be done yet is tried again at the next call."""
        self._workers.check()
        self._wake()
        self._see_outage()
        self._see_refused_writes()
        self._see_others()
        for each in [each for each in self._due if each.at_s <= elapsed_s]:
            if self._do(each):
                self._due.remove(each)

    def finished(self) -> bool:
        """Return whether everything was done, and nothing is down or paused any more."""
        others = [each.is_done() for each in (self._writing, self._growing, self._joining)]
        return not (self._due or self._paused or self._outage or self._refused) and all(others)

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
        for what in (self._faults.topics, self._faults.poisoner, self._faults.foreigners):
            what.close()
        for each in (self._writing, self._growing, self._joining):
            each.close()
        for name in list(self._paused):
            self._continue(name)
        self._background.shutdown()

    def _do(self, each: Disturbance) -> bool:
        if each.kind in {"broker-kill", "all-kill"}:
            return self._start_outage(each)
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
        name = each.choose(sorted(names))
        if each.kind == "kill":
            self._tell(f"killed {name} ({self._workers.running()[name]})")
            self._kill([name])
            self.done["kill"] += 1
            self._faults.recoveries.since("kill")
        elif each.kind == "remove":
            outage = self._outage is not None or self._refused is not None
            status = self._workers.remove(name)
            self.removed.append(Stop(status, outage))
            self._tell(f"removed {name}: {describe_status(status)}")
            self.done["remove"] += 1
        else:
            self._tell(f"paused {name} for {each.lasts_s:.1f} s")
            self._workers.kill(name, signal.SIGSTOP)
            self._paused[name] = (time.monotonic(), each)
        return True

    def _kill(self, names: Collection[str]) -> None:
        for name in names:
            self._workers.kill(name)
        while set(names) & self._workers.running().keys():
            time.sleep(0.01)  # else they could be killed twice
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
        if self._refused or (self._outage and self._outage_kind == "all-kill"):
            return False
        try:
            self._faults.topics.refuse_writes(each.topic)
        except (KafkaException, TimeoutError):
            return False  # until a broker answers
        self._tell(f"writes to {each.topic} are refused for {each.lasts_s:.1f} s")
        self._refused = time.monotonic(), each
        return True

    def _see_refused_writes(self) -> None:
        if self._refused is None:
            return
        since, each = self._refused
        if time.monotonic() - since < each.lasts_s:
            return
        try:
            self._faults.topics.accept_writes(each.topic)
        except (KafkaException, TimeoutError):
            return
        self._tell(f"writes to {each.topic} are accepted again")
        self._refused = None
        self._over("outage")

    def _do_aside(self, each: Disturbance) -> None:
        faults, kind = self._faults, each.kind

        def write() -> None:
            place = faults.poisoner.send(each.topic, each.pick, is_bomb=kind == "bomb")
            self._tell("wrote a {} to {}-{}, offset {}".format(kind, *place))
            self.done[kind] += 1

        def grow() -> None:
            rng = random.Random(f"partitions/{each.pick}")
            self._added.put(faults.topics.add_partition(faults.joined, rng))

        def join() -> None:
            self._tell(f"started a foreign {each.role} worker")
            faults.foreigners.start(each.role)
            self._tell(str(faults.foreigners.ended[-1]))
            self.done["foreign"] += 1

        if kind == "partitions":
            self._growing.do(grow)
        elif kind == "foreign":
            self._joining.do(join)
        else:
            self._writing.do(write)

    def _see_others(self) -> None:
        for each in (self._writing, self._growing, self._joining):
            each.is_done()  # raises what went wrong
        while not self._added.empty():
            partition = self._added.get()
            self._tell(f"{', '.join(self._faults.joined)} have a partition {partition}")
            self._faults.new_partition(partition)
            self.done["partitions"] += 1

    def _start_outage(self, each: Disturbance) -> bool:
        if self._outage:
            return False  # one at a time: the cluster must stay available
        if each.kind == "all-kill" and self._paused:
            return False  # until they have woken up: that is what they are paused for
        if each.kind == "all-kill" and self._refused:
            # after an unclean stop no replica of a partition may lead that had too few in sync
            # (KIP-966): without somebody's decision to lose data, it would stay without a leader
            return False
        if each.kind == "all-kill":
            self._tell(f"killed all brokers, for {each.lasts_s:.1f} s, and all workers")
            names = list(self._workers.running())
            for name in names:
                self._paused.pop(name, None)
            self._kill(names)
            for node in self._cluster.pids():
                self._cluster.kill_broker(node)
        else:
            self._tell(f"killed broker {each.node} for {each.lasts_s:.1f} s")
            self._cluster.kill_broker(each.node)
        self._outage_kind = each.kind
        self._outage = self._background.submit(self._bring_back, each)
        return True

    def _bring_back(self, each: Disturbance) -> None:
        if self._closing.wait(each.lasts_s):
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
            if self._closing.wait(0.5):
                return

    def _see_outage(self) -> None:
        if self._outage and self._outage.done():
            self._outage.result()
            self._outage = None
            self.done[self._outage_kind] += 1
            self._tell("all brokers are back, and in sync")


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
