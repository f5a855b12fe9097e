"""How soon after a fault every role commits again."""

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError
from tests.kit.kafka_pipeline import Groups

LOOK_S = 0.3
"""Seconds between two looks."""

Offsets = Mapping[tuple[str, str, int], tuple[int, int]]
"""A part, a topic of its input, a partition → what is committed, and where the log ends."""


@dataclass(slots=True)
class _Awaited:
    kind: str
    since: float
    before: Offsets | None = None


class Recoveries(threading.Thread):
    """Watches what the groups commit, and keeps kind of fault → how many `seconds` each took.

    Recovered is a pipeline whose every role has committed more in each partition of its input than
    it had at the fault, or has nothing more to do there.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(name="recoveries", daemon=True)
        self._groups = Groups(config)
        self._awaited: list[_Awaited] = []
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def since(self, kind: str) -> None:
        """Measure from now on: a fault came, or what has an end is over."""
        with self._lock:
            self._awaited.append(_Awaited(kind, time.monotonic()))

    def run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            with suppress(BrokerError):
                self._see(self._look())

    def close(self) -> None:
        self._stopping.set()
        if self.ident is not None:
            self.join(5.0)

    def numbers(self) -> dict[str, object]:
        with self._lock:  # a wait that ends meanwhile is listed once
            waiting = Counter(each.kind for each in self._awaited)
            ended = {kind: [*found] for kind, found in self.seconds.items()}
        kinds = sorted(waiting.keys() | ended.keys())
        return {f"recovery after {k}": _listed(ended.get(k, []), waiting[k]) for k in kinds}

    def _see(self, now: Offsets) -> None:
        at = time.monotonic()
        with self._lock:
            for each in list(self._awaited):
                if each.before is None:
                    each.before = now
                elif all(_is_further(each.before.get(place), here) for place, here in now.items()):
                    self.seconds[each.kind].append(at - each.since)
                    self._awaited.remove(each)

    def _look(self) -> Offsets:
        found: dict[tuple[str, str, int], tuple[int, int]] = {}
        for key, group in self._groups.offsets.items():
            committed = group.committed()
            for partition, end in group.ends().items():
                found[*key, partition] = committed[partition], end
        return found


def _listed(seconds: Sequence[float], waiting: int) -> str:
    """Return the times of those that ended, and how many did not."""
    parts = []
    if seconds:
        median, most = statistics.median(seconds), max(seconds)
        parts.append(f"median {median:.1f} s, most {most:.1f} s, of {len(seconds)}")
    if waiting:
        parts.append(f"{waiting} not by the end")
    return ", and ".join(parts)


def _is_further(before: tuple[int, int] | None, now: tuple[int, int]) -> bool:
    committed, end = now
    return before is None or committed > before[0] or committed >= end
