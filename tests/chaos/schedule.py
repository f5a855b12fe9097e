"""What is to be disturbed, and when, and where the checkpoints are: all from a seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Literal

from pipeline.parts import Role
from pipeline.supervisor import ROLES as OF_ALL

ROLES: tuple[Role, ...] = ("join", *OF_ALL)
"""Labels have a topic of their own."""

Kind = Literal["kill", "broker-kill", "add", "remove", "pause"]

Store = Literal["directory", "topic"]
"""Where the checkpoints are."""

WORKERS = 2
"""Of each role: at the start, and at least; but for those that were killed."""

MOST_WORKERS = 4

BROKERS = (1, 2, 3)
"""Node ids."""

BROKER_DOWN_S = (5.0, 12.0)
"""How long a killed broker stays away, at least and at most, before it is started again."""

INTO_OUTAGE_S = (2.0, 5.0)
"""How long after a broker some workers are killed. The others take over what it led only after
several seconds: until then results wait in the workers, and must not be taken for published."""

BEYOND_SESSION_S = (2.0, 8.0)
"""How much longer than its session timeout a worker is paused."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often to disturb.

    Attributes
    ----------
    kills
        Of workers.
    broker_kills
        Each with a restart, one at a time.
    rebalances
        By adding or removing a worker.
    pauses
        Of workers, each longer than the session timeout.
    """

    kills: int = 24
    broker_kills: int = 3
    rebalances: int = 8
    pauses: int = 2


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing to do.

    Attributes
    ----------
    at_s
        When, in seconds after the stream began to flow.
    kind
        What.
    role, pick
        Which worker: of this role, the one at this share (0 ≤ pick < 1) of those running.
    node
        Which broker.
    lasts_s
        How long a worker is paused, or a broker away.
    """

    at_s: float
    kind: Kind
    role: Role = "model"
    pick: float = 0.0
    node: int = 0
    lasts_s: float = 0.0

    def choose(self, names: Sequence[str]) -> str:
        """Return the worker to disturb."""
        return sorted(names)[int(self.pick * len(names))]


def store_of(seed: int) -> Store:
    """Return the store of a run that names none: the topic if the seed is odd.

    By its last bit, and not at random: in any two runs of a row both stores are tested.

    Examples
    --------
    >>> [store_of(seed) for seed in (11, 12)]
    ['topic', 'directory']
    """
    return "topic" if seed % 2 else "directory"


def make_schedule(
    seed: int, wanted: Wanted, *, span_s: float, session_timeout_s: float
) -> list[Disturbance]:
    """Return the disturbances in the order of their time, spread over a span.

    Examples
    --------
    >>> wanted = Wanted(kills=1, broker_kills=1, rebalances=0, pauses=0)
    >>> plan = make_schedule(7, wanted, span_s=60.0, session_timeout_s=10.0)
    >>> sorted(each.kind for each in plan)
    ['broker-kill', 'kill']
    >>> plan == make_schedule(7, wanted, span_s=60.0, session_timeout_s=10.0)
    True
    """
    rng = random.Random(f"chaos/{seed}")
    outages = list(_broker_kills(rng, wanted.broker_kills, span_s))
    plan = [
        *outages,
        *_kills(rng, wanted.kills, span_s, [each.at_s for each in outages]),
        *_rebalances(rng, wanted.rebalances, span_s),
        *_pauses(rng, wanted.pauses, span_s, session_timeout_s),
    ]
    return sorted(plan, key=lambda each: each.at_s)


def _kills(
    rng: random.Random, n: int, span_s: float, outages: Sequence[float]
) -> Iterator[Disturbance]:
    """Up to half of the kills are in outages, of a worker of each role in each outage."""
    kills = [
        Disturbance(at + rng.uniform(*INTO_OUTAGE_S), "kill", role, rng.random())
        for at in outages
        for role in rng.sample(ROLES, len(ROLES))
    ][: n // 2]
    yield from kills
    for role in _roles(rng, n - len(kills)):
        yield Disturbance(rng.uniform(0, span_s), "kill", role, rng.random())


def _broker_kills(rng: random.Random, n: int, span_s: float) -> Iterator[Disturbance]:
    # each in the first half of a slot of its own: the other brokers need time to catch up
    slot = span_s / max(n, 1)
    for i in range(n):
        at = i * slot + rng.uniform(0, slot / 2)
        yield Disturbance(
            at, "broker-kill", node=rng.choice(BROKERS), lasts_s=rng.uniform(*BROKER_DOWN_S)
        )


def _rebalances(rng: random.Random, n: int, span_s: float) -> Iterator[Disturbance]:
    workers = dict.fromkeys(ROLES, WORKERS)
    times = sorted(rng.uniform(0, span_s) for _ in range(n))
    for at, role in zip(times, _roles(rng, n), strict=True):
        grow = workers[role] == WORKERS or (workers[role] < MOST_WORKERS and rng.random() < 0.5)
        workers[role] += 1 if grow else -1
        yield Disturbance(at, "add" if grow else "remove", role, rng.random())


def _pauses(
    rng: random.Random, n: int, span_s: float, session_timeout_s: float
) -> Iterator[Disturbance]:
    for role in _roles(rng, n):
        lasts = session_timeout_s + rng.uniform(*BEYOND_SESSION_S)
        at = rng.uniform(0, max(span_s - lasts, 0.0))
        yield Disturbance(at, "pause", role, rng.random(), lasts_s=lasts)


def _roles(rng: random.Random, n: int) -> list[Role]:
    """Return n roles in any order, each as often as the others."""
    roles = list(islice(cycle(rng.sample(ROLES, len(ROLES))), n))
    rng.shuffle(roles)
    return roles
