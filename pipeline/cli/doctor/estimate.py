"""Turns what roles took in this process into rate, memory and disk of their workers."""

import math
from dataclasses import dataclass

from fluxplain.cli.doctor.measure import Measured, RoleCost
from fluxplain.config import Config

READ_S, SENT_S = 0.00013, 0.00005
"""CPU seconds that a worker takes besides its stage for a message that it reads, and for one that
it publishes: Kafka's clients, Faust, batches, commits. `python -m tests.measure.doctor` compares
the estimate with real workers."""

BUSY = 0.7
"""Share of a core that a worker should use at most: the rest is for bursts, checkpoints and
catching up after a restart."""

WORKER_BYTES = {"join": 150e6, "model": 390e6, "explainer": 245e6, "drift": 240e6}
"""Memory of a worker with next to no state: interpreter, libraries, compiled loops, buffers."""

STATE_COPIES = 3
"""Memory that a state takes, as a multiple of its pickled size: itself, evaluators' arrays, and the
copy while it is pickled."""

CHECKPOINTS = 2
"""Checkpoints of a partition that are kept besides the history."""

DAY_S = 86_400

MOST_EVERY = 10_000


@dataclass(frozen=True, slots=True)
class Load:
    """A worker's CPU seconds for one observation; ``plain_s`` when nothing is explained."""

    name: str
    seconds: float
    plain_s: float

    @classmethod
    def of(cls, name: str, cost: RoleCost) -> "Load":
        """Add what a worker takes besides its stage."""
        role = name.partition("-")[0]
        is_first = role in {"join", "model"}  # they read each observation, explained or not
        plain = cost.plain_s + (READ_S + SENT_S if is_first else 0.0)
        return cls(name, cost.seconds + READ_S * cost.taken + SENT_S * cost.sent, plain)

    def seconds_at(self, every: int) -> float:
        """Return the seconds if one of this many observations is explained, instead of each."""
        return self.plain_s + max(self.seconds - self.plain_s, 0.0) / every


class Estimate:
    """What a pipeline can do with one partition of ``features``, and what a rate needs."""

    def __init__(self, config: Config, measured: Measured) -> None:
        self._config, self._measured = config, measured
        self.loads = [Load.of(name, cost) for name, cost in measured.roles.items()]
        self.slowest = max(self.loads, key=lambda each: each.seconds)

    @property
    def rate(self) -> float:
        """Observations a second of one partition, if each worker has a core."""
        return 1.0 / self.slowest.seconds

    @property
    def rate_of_one_core(self) -> float:
        """Observations a second if all roles share one core."""
        return 1.0 / sum(each.seconds for each in self.loads)

    @property
    def explaining(self) -> float:
        """CPU of everything besides predicting and learning, as a share of all roles' CPU."""
        return 1.0 - sum(each.plain_s for each in self.loads) / sum(
            each.seconds for each in self.loads
        )

    @property
    def memory_bytes(self) -> dict[str, float]:
        """Worker → resident memory."""
        return {
            name: WORKER_BYTES[name.partition("-")[0]] + STATE_COPIES * cost.checkpoint_bytes
            for name, cost in self._measured.roles.items()
        }

    @property
    def checkpoint_bytes(self) -> float:
        """Disk that the checkpoints of one partition need, with their history."""
        history = {"model": self._config.checkpoint.history}
        return sum(
            cost.checkpoint_bytes * (CHECKPOINTS + history.get(name.partition("-")[0], 0))
            for name, cost in self._measured.roles.items()
        )

    def disk_a_day(self, rate: float) -> dict[str, float]:
        """Return topic → bytes a day of one copy, at a rate of observations a second."""
        return {topic: size * rate * DAY_S for topic, size in self._measured.disk.items()}

    def partitions_for(self, rate: float) -> int:
        """Return the partitions of ``features`` that a rate needs."""
        streams = [each.seconds for each in self.loads if not each.name.startswith("explainer")]
        return max(math.ceil(rate * max(streams) / BUSY), 1)

    def every_for(self, rate: float) -> int | None:
        """Return the smallest factor of ``explain.every`` for which one partition can take a rate.

        None if not even predicting and learning can.
        """
        most = BUSY / rate
        if any(each.plain_s >= most for each in self.loads):
            return None
        needed = [(e.seconds - e.plain_s) / (most - e.plain_s) for e in self.loads]
        every = max(math.ceil(max(needed)), 1)
        return every if every * self._config.explain.every <= MOST_EVERY else None

    def rate_at(self, every: int) -> float:
        """Return the rate of one partition with ``explain.every`` times a factor."""
        return 1.0 / max(each.seconds_at(every) for each in self.loads)

    def rate_with_shards(self, shards: int) -> float:
        """Return the rate if `model.shards` were this many, instead of one."""
        model = next(each for each in self.loads if each.name.startswith("model"))
        others = max(each.seconds for each in self.loads if each is not model)
        return 1.0 / max(model.seconds_at(shards), others)

    def budget_ms_for(self, rate: float) -> float | None:
        """Return the `explain.budget_ms` for which one partition can take a rate.

        None if predicting and learning alone take longer.
        """
        model = next(each for each in self.loads if each.name.startswith("model"))
        beside = model.seconds - self._measured.roles[model.name].seconds
        budget = BUSY / rate - beside
        return 1000.0 * budget if budget > self._measured.roles[model.name].plain_s else None

    def explainers_for(self, rate: float) -> int:
        """Return the workers of the explainer that a rate needs; they share its partitions."""
        seconds = sum(e.seconds for e in self.loads if e.name.startswith("explainer"))
        return max(math.ceil(rate * seconds / BUSY), 1)
