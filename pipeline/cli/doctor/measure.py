"""Measures what each role takes for an observation: the real stages, in this process."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fluxplain.cli.doctor.role_run import Factory, RoleRun
from fluxplain.cli.doctor.sample_sizes import LEAST_MEASURED, LEAST_RECORDS, WARM_RECORDS
from fluxplain.config import Config
from fluxplain.schemas.wording import plural
from fluxplain.sources import SourceError
from fluxplain.stages import Message

BATCH_S = 1.0
"""Seconds that all roles take for a batch of observations: long enough for evaluations to share
messages as in a backlog."""

FIRST_BATCH = 100
"""Observations in the first batch."""

WARM_S, MEASURED_S, PLAIN_S = 5.0, 15.0, 3.0
"""Seconds to warm up: loops are compiled and the samples fill; to measure; and to measure while
hardly anything is explained."""

MOST_RECORDS = 40_000
"""Most observations that are read: more than the seconds suffice for."""

SELDOM = 10_000
"""One of how many observations is explained where hardly anything shall be."""

Report = Callable[[str, int], None]
"""Called with what is done and the number of observations so far."""


@dataclass(frozen=True, slots=True)
class RoleCost:
    """What a role takes for one observation: CPU seconds, messages read and published.

    ``plain_s`` is its time when nothing is explained; ``checkpoint_bytes`` the size of its state.
    """

    seconds: float
    plain_s: float
    taken: float
    sent: float
    checkpoint_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs by replica, disk bytes of an observation by topic, and how many were measured.

    ``letters`` counts the dead letters among all that passed through; ``last_reason`` is that of
    the last one.
    """

    roles: dict[str, RoleCost]
    disk: dict[str, float]
    records: int
    warm: int
    letters: int = 0
    last_reason: str = ""


def measure(
    config: Config,
    values: Iterable[bytes],
    make: Factory,
    *,
    is_timed: bool = True,
    report: Report = lambda _what, _records: None,
) -> Measured:
    """Pass observations through all roles, and measure each.

    If it is timed, some seconds of them; else all. Raises SourceError if there are fewer than 500.
    """
    topic = config.topic("features")
    given = [*islice(values, MOST_RECORDS)] if is_timed else [*values]
    if len(given) < LEAST_MEASURED:
        raise SourceError(
            f"{plural(len(given), 'observation')} {'is' if len(given) == 1 else 'are'} too few to "
            f"measure: give at least {LEAST_MEASURED}, or better some thousands"
        )
    messages = (Message(topic, 0, offset, None, value) for offset, value in enumerate(given))
    # of a short file some observations are left for each part
    plain_most = max(len(given) // 5, LEAST_RECORDS)
    warm_most = max(len(given) // 4, WARM_RECORDS)
    most = len(given) - plain_most - warm_most
    runs = [RoleRun(config, replica, make) for replica in config.replicas()]
    flow = _Flow(runs, report, is_timed=is_timed)
    warm = flow.run("warming up", messages, WARM_S, range(WARM_RECORDS, warm_most))
    flow.reset()
    records = flow.run("measuring", messages, MEASURED_S, range(LEAST_RECORDS, most))
    needs = [each.need for each in flow.roles]
    sizes = sum((each.disk for each in flow.roles), Counter[str]())
    disk = {topic: size / records for topic, size in sizes.items()}
    flow.reset()
    flow.explain_seldom()
    counts = range(LEAST_RECORDS, plain_most)
    plain = flow.run("measuring without explanations", messages, PLAIN_S, counts)
    roles = {
        str(each.replica): RoleCost(
            need.seconds / records,
            each.need.seconds / plain,
            need.taken / records,
            need.sent / records,
            each.checkpoint_bytes,
        )
        for each, need in zip(flow.roles, needs, strict=True)
    }
    letters = sum(each.letters for each in flow.roles)
    reason = next((each.last_reason for each in flow.roles if each.letters), "")
    return Measured(roles, disk, records, warm, letters, reason)


class _Flow:
    """All roles, in the order of the data flow, and the size of the next batch."""

    def __init__(self, roles: Sequence[RoleRun], report: Report, *, is_timed: bool) -> None:
        self.roles = roles
        self._is_timed = is_timed
        self._report = report
        self._batch = FIRST_BATCH
        self._records = 0

    def run(self, what: str, messages: Iterator[Message], seconds: float, counts: range) -> int:
        """Pass messages through all roles for some time; return how many were taken.

        ``counts`` begins with the fewest and ends with the most.
        """
        taken = 0
        until = time.monotonic() + seconds if self._is_timed else math.inf
        while taken < counts.start or (taken < counts.stop and time.monotonic() < until):
            began = time.monotonic()
            batch = [*islice(messages, min(self._batch, counts.stop - taken))]
            self._pass(batch)
            taken += len(batch)
            self._records += len(batch)
            self._report(what, self._records)
            share = BATCH_S / max(time.monotonic() - began, 1e-3)
            self._batch = max(int(self._batch * min(share, 2.0)), 1)
        return taken

    def reset(self) -> None:
        """Begin to count anew."""
        for each in self.roles:
            each.reset()

    def explain_seldom(self) -> None:
        """Let the model role explain hardly any observation from here on."""
        for each in self.roles:
            each.explain_every(SELDOM)

    def _pass(self, messages: Sequence[Message]) -> None:
        known = list(messages)
        for role in self.roles:
            known += role.take([each for each in known if each.topic in role.topics])
