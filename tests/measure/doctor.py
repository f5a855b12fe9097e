"""Compares the estimate of ``fluxplain doctor --measure`` with real workers, for kinds of models.

``python -m tests.measure.doctor`` measures six kinds in some minutes; name some to measure only
these. Both sides take the same observations: the estimate in this process, then the workers of
``fluxplain up`` on an embedded broker. A worker's CPU time gives the rate that it can take with a
core of its own, so what else the machine does is not in it. But work takes more CPU time while
other processes use the caches and the other half of a core. So a small piece of work is timed again
and again during both sides, and the workers' seconds are corrected by its times. Uncorrected ratios
are printed too. The last line is the largest error.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import psutil
from river.datasets import synth

from fluxplain.agents import make_stage
from fluxplain.cli.doctor.estimate import Estimate
from fluxplain.cli.doctor.measure import Measured, measure
from fluxplain.cli.doctor.sample_sizes import WARM_RECORDS
from fluxplain.config import load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.progress import GroupOffsets, PipelineProgress
from tests.kit.settings import write_config
from tests.kit.workers import Workers
from tests.models.kinds import FRIEDMAN, NUMBERS, SCALER, Records, friedman, loans, messages

RECORDS = 60_000
"""Observations that there are; the seconds of a measurement end it before."""

MOST = 15_000
"""Most observations that are measured on workers."""

CHUNK = 250
"""Observations that are sent at once."""

MOST_UNREAD: Mapping[Role, int] = {"model": 400, "explainer": 10, "drift": 1_500}
"""Most messages of a partition that a role may have to read before more observations are sent: the
embedded broker keeps 5 MiB of each, and drops the rest."""

BAR = 0.30
"""Largest error of the rate that is allowed, as a share of the measured one."""


@dataclass(frozen=True)
class Kind:
    """A model, and the stream that it learns."""

    factory: str
    params: Mapping[str, Any]
    stream: Callable[[int], Records]
    features: Mapping[str, str]
    label: str


SPHERES = {f"x{i}": "numeric" for i in range(18)}


def spheres(records: int) -> Records:
    """Return points around centres of seven classes, in 18 dimensions."""
    made = synth.RandomRBF(seed_model=1, seed_sample=2, n_classes=7, n_features=len(SPHERES))
    data = made.take(records)
    return [{"x": {f"x{i}": v for i, v in x.items()}, "y": int(y)} for x, y in data]


LOGISTIC = [SCALER, "river.linear_model:LogisticRegression"]

LOANS = (loans, NUMBERS, "boolean")

KINDS = {
    "ARFClassifier": Kind("river.forest:ARFClassifier", {"n_models": 10}, *LOANS),
    "LogisticRegression": Kind("fluxplain.models:from_river", {"steps": LOGISTIC}, *LOANS),
    "GaussianNB": Kind("river.naive_bayes:GaussianNB", {}, *LOANS),
    "AMFClassifier": Kind("river.forest:AMFClassifier", {"n_estimators": 10}, *LOANS),
    "HoeffdingTreeRegressor": Kind(
        "river.tree:HoeffdingTreeRegressor", {}, friedman, FRIEDMAN, "number"
    ),
    # the constants were chosen without this one
    "GaussianNB of 7 classes": Kind(
        "river.naive_bayes:GaussianNB", {}, spheres, SPHERES, "integer"
    ),
}


class Pace:
    """CPU seconds that the same piece of Python takes while something else is measured."""

    def __init__(self) -> None:
        self._taken: list[float] = []

    def sample(self) -> None:
        began = time.thread_time()
        for i in range(300):
            orjson.loads(orjson.dumps({str(key): float(key * i) for key in range(20)}))
        self._taken.append(time.thread_time() - began)

    @property
    def seconds(self) -> float:
        return median(self._taken)


@dataclass(frozen=True)
class Worker:
    """What a real worker took: CPU seconds of an observation, and resident memory in bytes."""

    seconds: float
    memory: float


def settings_of(kind: Kind, path: Path) -> Path:
    fields = {
        "features": dict(kind.features),
        "label": {"type": kind.label},
        "model": {"factory": kind.factory, "params": dict(kind.params)},
        "dashboard": {"enabled": False},
    }
    return write_config(path, fields)


def of_workers(
    path: Path, values: list[bytes], warm: int, pace: Pace
) -> tuple[dict[str, Worker], float]:
    """Return what each role's worker took, and the observations a second on this machine."""
    with (
        EmbeddedBroker() as broker,
        Workers(path, broker.bootstrap_servers, path.parent) as workers,
    ):
        workers.start()
        while not all(map(workers.next_offsets, workers.running())):
            workers.attend()  # the broker would drop what a role does not read soon
        begin, began_at = {}, 0.0
        with closing(PipelineProgress(workers.config, partition=0)) as progress:
            feed = _Feed(workers)
            for part, end in ((values[:warm], warm), (values[warm:], len(values))):
                begin, began_at = _seconds(workers), time.monotonic()
                for i in range(0, len(part), CHUNK):
                    while feed.is_full():
                        workers.attend()
                        pace.sample()
                    feed.send(part[i : i + CHUNK])
                while progress.update() < end:
                    workers.attend()
                    pace.sample()
        took_s, count = time.monotonic() - began_at, len(values) - warm
        found = {
            name.rpartition("-")[0]: Worker(
                (seconds - begin[name]) / count,
                psutil.Process(workers.running()[name]).memory_info().rss,
            )
            for name, seconds in _seconds(workers).items()
        }
    return found, count / took_s


class _Feed:
    """Sends observations while the model role has some to read, and no role is far behind."""

    def __init__(self, workers: Workers) -> None:
        self._workers, config = workers, workers.config
        self._topic, self._producer = config.topic("features"), RecordProducer(config)
        self._read = [
            (f"{role}-1", GroupOffsets(config, role, config.inputs(role)[0]), most)
            for role, most in MOST_UNREAD.items()
        ]

    def is_full(self) -> bool:
        return any(self._unread(name, log) > most for name, log, most in self._read)

    def send(self, values: Sequence[bytes]) -> None:
        for value in values:
            self._producer.send(self._topic, value, partition=0)
        self._producer.flush()

    def _unread(self, name: str, log: GroupOffsets) -> int:
        # committed offsets are some seconds old
        reached = self._workers.next_offsets(name)
        return max(end - reached.get(partition, 0) for partition, end in log.ends().items())


def _seconds(workers: Workers) -> dict[str, float]:
    times = {name: psutil.Process(pid).cpu_times() for name, pid in workers.running().items()}
    return {name: each.user + each.system for name, each in times.items()}


def compare(name: str, kind: Kind, folder: Path) -> float:
    """Print both sides of a kind; return the estimated rate as a multiple of the measured one."""
    path = settings_of(kind, folder / "fluxplain.toml")
    config, values = load_config(path), messages(kind.stream, RECORDS)
    here, there = Pace(), Pace()
    measured = measure(config, values, make_stage, report=lambda _what, _records: here.sample())
    estimate = Estimate(config, measured)
    warm = max(measured.warm, WARM_RECORDS)
    given = values[: warm + min(measured.records, MOST)]
    real, throughput = of_workers(path, given, warm, there)
    slower = there.seconds / here.seconds
    rate = slower / max(each.seconds for each in real.values())
    print(
        f"{name}: estimated {estimate.rate:,.0f} records/s (slowest: {estimate.slowest.name}), "
        f"measured {rate:,.0f}, ratio {estimate.rate / rate:.2f} (uncorrected "
        f"{slower * estimate.rate / rate:.2f}); all roles on one core "
        f"{estimate.rate_of_one_core:,.0f} and "
        f"{slower / sum(each.seconds for each in real.values()):,.0f}; "
        f"throughput on this machine {throughput:,.0f}"
    )
    for line in _roles(estimate, measured, real):
        print(line, flush=True)
    return estimate.rate / rate


def _roles(estimate: Estimate, measured: Measured, real: Mapping[str, Worker]) -> list[str]:
    return [
        f"  {load.name}: {1000 * load.seconds:.2f} ms of CPU ({1000 * cost.seconds:.2f} in the "
        f"stage, {cost.taken:.2f} messages read, {cost.sent:.2f} published), measured "
        f"{1000 * real[load.name].seconds:.2f} ms; "
        f"memory {estimate.memory_bytes[load.name] / 1e6:,.0f} MB, measured "
        f"{real[load.name].memory / 1e6:,.0f} MB"
        for load in estimate.loads
        for cost in [measured.roles[load.name]]
    ]


def main(*names: str) -> None:
    """Compare the named kinds, by default all; end with status 1 if one is beyond the bar."""
    errors = []
    for name in names or KINDS:
        with tempfile.TemporaryDirectory(prefix="fluxplain-doctor-") as folder:
            errors.append(abs(compare(name, KINDS[name], Path(folder)) - 1.0))
    print(f"largest error: {max(errors):.0%}")
    sys.exit(max(errors) > BAR)


if __name__ == "__main__":
    main(*sys.argv[1:])
