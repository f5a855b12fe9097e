"""What is to be disturbed, and when, and where the checkpoints are: all from a seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated, Any, Literal

import typer

from fluxplain.cli.supervisor import ROLES as OF_ALL
from fluxplain.config.kafka_settings import SESSION_TIMEOUT_S
from fluxplain.config.replica import Role

ROLES: tuple[Role, ...] = ("join", *OF_ALL)
"""Labels have a topic of their own."""

Kind = Literal[
    "kill",
    "broker-kill",
    "add",
    "remove",
    "pause",
    "outage",
    "freeze",
    "all-kill",
    "partitions",
    "poison",
    "bomb",
    "foreign",
]

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

WRITERS: dict[str, tuple[Role, ...]] = {
    "observations": ("join",),
    "predictions": ("model",),
    "reasons": ("model",),
    "evaluations": ("model",),
    "explanations": ("explainer",),
    "changes": ("drift",),
    "dead-letters": ("model",),
    "register": ROLES,
    "checkpoints": ROLES,
}
"""Topic whose writes may be refused → the roles that write there."""

FIRST_REFUSED = ("observations", "evaluations")
"""Topics of which the first that there is has the first outage of writes, a long one with a frozen
worker: so records were lost once."""

SHORTEST_OUTAGE_S = 10.0
"""Seconds for which writes are refused, at least."""

BETWEEN_OUTAGES_S = 20.0
"""Seconds between the end of an outage of writes and the next one."""

INTO_REFUSAL_S = (-1.0, 4.0)
"""Seconds after the start of an outage at which a worker is frozen: mostly with outputs that were
refused and wait in its producer, sometimes without."""

AROUND_OUTAGE_S = (1.0, 6.0)
"""Seconds by which a frozen worker goes on before the end of an outage, or after it."""

ALL_DOWN_S = (0.0, 15.0)
"""Seconds that all brokers stay away, at least and at most, before they are started again."""


def times(help: str | None = None) -> Any:
    return typer.Option(min=0, help=help)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often to disturb: the command's options."""

    kills: Annotated[int, times()] = 24
    broker_kills: Annotated[int, times()] = 3
    rebalances: Annotated[int, times()] = 8
    pauses: Annotated[int, times()] = 2
    outages: Annotated[int, times("Outages of all writes to a topic.")] = 3
    outage_most: Annotated[
        float, typer.Option(min=10, max=150, help="Maximum seconds that such an outage lasts.")
    ] = 150.0
    frozen: Annotated[int, times("Outages with a frozen writer.")] = 2
    all_kills: Annotated[int, times("Kills of all processes at once.")] = 1
    partitions: Annotated[int, times("Partitions added to the topics.")] = 1
    poisons: Annotated[int, times("Records of any bytes, in any topic.")] = 40
    bombs: Annotated[int, times("Small batches that unpack to 300 MB.")] = 11
    foreign: Annotated[int, times("Workers with another seed and model.")] = 1


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing to do, at so many seconds after the stream began to flow.

    `pick` says which worker of the role: the one at this share (0 ≤ pick < 1) of those running.
    `lasts_s` is how long a worker is paused, a broker, the `node`, away, or a topic, named without
    the prefix, without writes.
    """

    at_s: float
    kind: Kind
    role: Role = "model"
    pick: float = 0.0
    node: int = 0
    lasts_s: float = 0.0
    topic: str = ""

    def choose(self, names: Sequence[str]) -> str:
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


@dataclass(frozen=True, slots=True)
class Targets:
    """What there is to disturb: the roles that run, and the topics, without the prefix."""

    roles: Sequence[Role] = ROLES
    topics: Sequence[str] = ("features", "labels", *WRITERS)


EVERYTHING = Targets()


def needed_s(seed: int, wanted: Wanted) -> float:
    """Return the shortest span, in seconds, that has room for all outages of writes."""
    return sum(each + BETWEEN_OUTAGES_S for each in _outage_lengths(seed, wanted))


def make_schedule(
    seed: int, wanted: Wanted, span_s: float, targets: Targets = EVERYTHING
) -> list[Disturbance]:
    """Return the disturbances in the order of their time, spread over a span.

    Examples
    --------
    >>> wanted = Wanted(1, 1, 0, 0, outages=0, all_kills=0, partitions=0, poisons=0, bombs=0)
    >>> plan = make_schedule(7, wanted, span_s=60.0)
    >>> sorted(each.kind for each in plan)
    ['broker-kill', 'foreign', 'kill']
    >>> plan == make_schedule(7, wanted, span_s=60.0)
    True
    """
    rng = random.Random(f"chaos/{seed}")
    roles = targets.roles
    outages = list(_broker_kills(rng, wanted.broker_kills, span_s))
    plan = [
        *outages,
        *_kills(rng, roles, wanted.kills, span_s, [each.at_s for each in outages]),
        *_rebalances(rng, roles, wanted.rebalances, span_s),
        *_pauses(rng, roles, wanted.pauses, span_s),
        *_refusals(seed, wanted, span_s, targets),
        *_others(seed, wanted, span_s, targets),
    ]
    return sorted(plan, key=lambda each: each.at_s)


def _outage_lengths(seed: int, wanted: Wanted) -> list[float]:
    """Return how long each outage of writes lasts: the first, the third, … about the longest."""
    rng = random.Random(f"chaos/{seed}/outages")
    most = wanted.outage_most
    return [
        rng.uniform(max(0.75 * most, SHORTEST_OUTAGE_S), most)
        if i % 2 == 0
        else rng.uniform(SHORTEST_OUTAGE_S, max(0.4 * most, SHORTEST_OUTAGE_S))
        for i in range(wanted.outages)
    ]


def _refusals(seed: int, wanted: Wanted, span_s: float, targets: Targets) -> Iterator[Disturbance]:
    """Outages of writes, one after the other, and workers that are frozen across them."""
    rng = random.Random(f"chaos/{seed}/refusals")
    lengths = _outage_lengths(seed, wanted)
    topics = [each for each in WRITERS if each in targets.topics]
    first = next(each for each in FIRST_REFUSED if each in topics)
    order = sorted(rng.sample(topics, len(topics)), key=lambda each: each != first)
    chosen = list(islice(cycle(order), len(lengths)))
    slack = max(span_s - needed_s(seed, wanted), 0.0)
    starts = sorted(rng.uniform(0.0, slack) for _ in lengths)
    # not always the long ones
    others = range(1, len(lengths))
    frozen = {0, *rng.sample(others, min(max(wanted.frozen - 1, 0), len(others)))}
    before = 0.0
    for i, (start, lasts, topic) in enumerate(zip(starts, lengths, chosen, strict=True)):
        at = start + before + AROUND_OUTAGE_S[1]
        before += lasts + BETWEEN_OUTAGES_S
        yield Disturbance(at, "outage", lasts_s=lasts, topic=topic)
        if i in frozen and wanted.frozen:
            role = rng.choice([each for each in WRITERS[topic] if each in targets.roles])
            since = at + rng.uniform(*INTO_REFUSAL_S)
            sooner = rng.random() < 0.5 and lasts > SESSION_TIMEOUT_S + 4 * AROUND_OUTAGE_S[1]
            until = at + lasts + rng.uniform(*AROUND_OUTAGE_S) * (-1 if sooner else 1)
            until = max(until, since + SESSION_TIMEOUT_S + BEYOND_SESSION_S[0])
            yield Disturbance(
                since, "freeze", role, rng.random(), lasts_s=until - since, topic=topic
            )


def _others(seed: int, wanted: Wanted, span_s: float, targets: Targets) -> Iterator[Disturbance]:
    rng = random.Random(f"chaos/{seed}/others")
    for i in range(wanted.all_kills):
        slot = span_s / wanted.all_kills
        at = (i + rng.uniform(0.1, 0.6)) * slot
        yield Disturbance(at, "all-kill", lasts_s=rng.uniform(*ALL_DOWN_S))
    for _ in range(wanted.partitions):
        at = rng.uniform(0.1, 0.5) * span_s
        yield Disturbance(at, "partitions", pick=rng.random())
    kinds: list[tuple[Kind, int]] = [("poison", wanted.poisons), ("bomb", wanted.bombs)]
    for kind, n in kinds:
        # every topic as often as the others
        order = rng.sample(list(targets.topics), len(targets.topics))
        for topic in islice(cycle(order), n):
            yield Disturbance(rng.uniform(0, span_s), kind, pick=rng.random(), topic=topic)
    for _ in range(wanted.foreign):
        yield Disturbance(rng.uniform(0, span_s), "foreign", rng.choice(targets.roles))


def _kills(
    rng: random.Random, roles: Sequence[Role], n: int, span_s: float, outages: Sequence[float]
) -> Iterator[Disturbance]:
    """Up to half of the kills are in outages, of a worker of each role in each outage."""
    kills = [
        Disturbance(at + rng.uniform(*INTO_OUTAGE_S), "kill", role, rng.random())
        for at in outages
        for role in rng.sample(roles, len(roles))
    ][: n // 2]
    yield from kills
    for role in _roles(rng, roles, n - len(kills)):
        yield Disturbance(rng.uniform(0, span_s), "kill", role, rng.random())


def _broker_kills(rng: random.Random, n: int, span_s: float) -> Iterator[Disturbance]:
    # each in the first half of a slot of its own: the other brokers need time to catch up
    slot = span_s / max(n, 1)
    for i in range(n):
        at = i * slot + rng.uniform(0, slot / 2)
        yield Disturbance(
            at, "broker-kill", node=rng.choice(BROKERS), lasts_s=rng.uniform(*BROKER_DOWN_S)
        )


def _rebalances(
    rng: random.Random, roles: Sequence[Role], n: int, span_s: float
) -> Iterator[Disturbance]:
    workers = dict.fromkeys(roles, WORKERS)
    times = sorted(rng.uniform(0, span_s) for _ in range(n))
    for at, role in zip(times, _roles(rng, roles, n), strict=True):
        grow = workers[role] == WORKERS or (workers[role] < MOST_WORKERS and rng.random() < 0.5)
        workers[role] += 1 if grow else -1
        yield Disturbance(at, "add" if grow else "remove", role, rng.random())


def _pauses(
    rng: random.Random, roles: Sequence[Role], n: int, span_s: float
) -> Iterator[Disturbance]:
    for role in _roles(rng, roles, n):
        lasts = SESSION_TIMEOUT_S + rng.uniform(*BEYOND_SESSION_S)
        at = rng.uniform(0, max(span_s - lasts, 0.0))
        yield Disturbance(at, "pause", role, rng.random(), lasts_s=lasts)


def _roles(rng: random.Random, among: Sequence[Role], n: int) -> list[Role]:
    """Return n roles in any order, each as often as the others."""
    roles = list(islice(cycle(rng.sample(among, len(among))), n))
    rng.shuffle(roles)
    return roles
