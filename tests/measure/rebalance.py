"""Moves one of eight partitions to a worker that joins, and looks at the other seven.

``python -m tests.measure.rebalance``: seven workers of the model role share eight partitions on a
real Kafka, an eighth one joins, then one is stopped. Of each partition it prints how many records
were predicted a second before the rebalance, how many in its worst second during it, the longest
pause between two new predictions, and how many records were published again.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from deploy.kafka import Cluster
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import parse_stream
from tests.kit.command import Clock, execute, say
from tests.kit.settings import write_config
from tests.kit.waiting import wait_until
from tests.kit.workers import Workers
from tests.measure.chaos.feed import Feed
from tests.measure.soak import stream

PARTITIONS = 8

CALM_S = 15.0
"""Seconds of a steady stream before each rebalance, and from its end on."""

TIMEOUT_S = 120.0

DRIFT_EVERY = 2_000


@dataclass(slots=True)
class Predicted:
    """When each record of a partition was first predicted, and how often again."""

    times: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    _newest: int = -1

    def take(self, seq: int, at: float) -> None:
        if seq > self._newest:
            self.times.append(at)
            self._newest = seq
        else:
            self.again.append(at)


class Predictions:
    """All predictions, by the time at which their worker published them."""

    def __init__(self, workers: Workers) -> None:
        self._reader = TopicReader(workers.config, ["predictions"], from_beginning=True)
        self.of: defaultdict[int, Predicted] = defaultdict(Predicted)

    def poll(self) -> None:
        for message in self._reader.poll(0.1):
            fields = orjson.loads(message.value() or b"")
            partition = parse_stream(fields["stream"])[1]
            self.of[partition].take(fields["seq"], message.timestamp()[1] / 1000)

    def close(self) -> None:
        self._reader.close()


def rebalance(
    rate: Annotated[float, typer.Option(help="Records of each partition, a second.")] = 20.0,
    features: Annotated[int, typer.Option(help="Seed of the streams.")] = 1,
) -> None:
    """Add a worker of the model role, and stop one, while eight partitions are read."""

    def work(folder: Path, clock: Clock) -> Sequence[str]:
        with ExitStack() as stack:
            cluster = stack.enter_context(Cluster(brokers=1, tell=clock.say))
            settings: dict[str, Any] = {
                **stream.SETTINGS,
                "topics": {"features_partitions": PARTITIONS, "partitions": 3},
            }
            path = write_config(folder / "rebalance.toml", settings)
            workers = stack.enter_context(Workers(path, cluster.bootstrap_servers, folder))
            predictions = Predictions(workers)
            stack.callback(predictions.close)
            for _ in range(PARTITIONS - 1):
                workers.add("model")
            _wait_for_all(workers, predictions)
            for each in range(PARTITIONS):
                values = stream.observations(DRIFT_EVERY, seed=features + each)
                feed = Feed(workers.config, each, values, rate)
                stack.callback(feed.close)
                feed.start()
            _pass(workers, predictions, CALM_S)
            _report("an eighth worker joins", workers, predictions, lambda: workers.add("model"))
            last = f"model-{PARTITIONS}"
            _report("that worker is stopped", workers, predictions, lambda: workers.remove(last))
            say(f"workers that ended by themselves: {len(workers.deaths)}")
        return []

    execute("rebalance", work, passed="see above")


def _report(what: str, workers: Workers, predictions: Predictions, act: Any) -> None:
    _pass(workers, predictions, CALM_S)
    starts, began_at = len(workers.starts("model")), time.time()
    act()
    _wait_for_all(workers, predictions)
    _pass(workers, predictions, CALM_S)
    moved = {each.partition for each in workers.starts("model")[starts:]}
    say(f"\n{what}: partitions loaded: {len(moved)}")
    say("partition  records/s before  worst second  longest pause before  longest pause  again")
    for number, predicted in sorted(predictions.of.items()):
        before = [each for each in predicted.times if began_at - CALM_S <= each < began_at]
        during = [each for each in predicted.times if began_at - 1.0 <= each]
        again = sum(each >= began_at for each in predicted.again)
        say(
            f"{number:>9}{'*' if number in moved else ' '} {len(before) / CALM_S:>16.1f} "
            f"{_worst_second(during):>13} {_longest_pause(before):>19.2f} s "
            f"{_longest_pause(during):>12.2f} s {again:>6}"
        )


def _worst_second(times: Sequence[float]) -> int:
    """Return the smallest number of records in any second, by tenths of one."""
    counts: Mapping[int, int] = _by_tenth(times)
    first, last = min(counts), max(counts)
    return min(
        sum(counts.get(each, 0) for each in range(start, start + 10))
        for start in range(first, last - 9)
    )


def _by_tenth(times: Iterable[float]) -> dict[int, int]:
    counts: defaultdict[int, int] = defaultdict(int)
    for each in times:
        counts[int(each * 10.0)] += 1
    return counts


def _longest_pause(times: Sequence[float]) -> float:
    return max(after - before for before, after in pairwise(times))


def _wait_for_all(workers: Workers, predictions: Predictions) -> None:
    """Wait until the ready workers together have all partitions, each of them at least one."""

    def is_shared() -> bool:
        owned = [[*workers.next_offsets(name)] for name in workers.running("model")]
        return all(owned) and sorted(chain(*owned)) == [*range(PARTITIONS)]

    def attend() -> None:
        workers.attend()
        predictions.poll()

    wait_until(is_shared, TIMEOUT_S, what=lambda: "the partitions are not shared", attend=attend)


def _pass(workers: Workers, predictions: Predictions, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        workers.attend()
        predictions.poll()


if __name__ == "__main__":
    typer.run(rebalance)
