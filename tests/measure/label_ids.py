"""A stream whose label column is an id by mistake: each label is a new class.

``python -m tests.measure.label_ids`` sends it to a pipeline of processes on a real Kafka. Of each
tenth it prints the observations a second and the memory of the model's worker, then the dead
letters and the warnings. From the tenth in which ``label.max_classes`` is reached, both must be
flat.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import orjson
import psutil
import typer

from deploy.kafka import Cluster
from fluxplain.kafka.topics.progress import PipelineProgress
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.kafka.topics.topic_reader import read_to_end
from tests.kit.command import Clock, execute, say
from tests.kit.settings import write_config
from tests.kit.workers import Workers
from tests.measure.soak.stream import SETTINGS, observations

TENTHS = 10

MB = 1_000_000

CLASSIFIER: dict[str, Any] = {
    **SETTINGS,
    "features": {"a": "numeric", "b": "numeric"},
    "label": {"type": "integer"},
    "model": {"factory": "river.naive_bayes:GaussianNB", "params": {}},
    "explain": {**SETTINGS["explain"], "loss": "cross_entropy"},
}


def label_ids(
    records: Annotated[int, typer.Option(min=1000, help="Number of observations.")] = 20_000,
) -> None:
    """Send ids in the place of labels; throughput and memory must stay flat."""

    def work(folder: Path, clock: Clock) -> Sequence[str]:
        path = write_config(folder / "ids.toml", CLASSIFIER)
        with (
            Cluster(brokers=1, tell=clock.say) as cluster,
            Workers(path, cluster.bootstrap_servers, folder) as workers,
        ):
            workers.start()
            workers.address("model-1")
            stream = _with_ids()
            say("share  observations/s  model's memory")
            for tenth in range(1, TENTHS + 1):
                began_at = time.monotonic()
                _process(workers, stream, records // TENTHS)
                rate = records / TENTHS / (time.monotonic() - began_at)
                memory = psutil.Process(workers.running()["model-1"]).memory_info().rss
                say(f"{tenth / TENTHS:>5.0%} {rate:>15,.0f} {memory / MB:>12.1f} MB")
            letters = sum(1 for _ in read_to_end(workers.config, "dead-letters"))
            say(f"dead letters: {letters:,} of {records:,}; workers that died: {workers.deaths}")
            warnings = re.findall(r"WARNING .*dead letters; the latest: .*", workers.log)
            say(f"warnings in the log: {len(warnings)}; the last one: {warnings[-1]}")
        return []

    execute("label-ids", work, passed="see above")


def _with_ids() -> Iterator[bytes]:
    for i, value in enumerate(observations(drift_every=5_000)):
        x = orjson.loads(value)["x"]
        yield orjson.dumps({"x": {"a": float(x["a"]), "b": x["b"]}, "y": 1_000_000 + i})


def _process(workers: Workers, stream: Iterator[bytes], n: int) -> None:
    """Send the next observations, and wait until all roles are through."""
    with closing(PipelineProgress(workers.config, partition=0)) as progress:
        through = progress.end_of_features() + n
        options = ReplayOptions(max_lag=5_000)
        values = [next(stream) for _ in range(n)]
        replay(workers.config, values, options, report=lambda *_: workers.check())
        while progress.update() < through:
            workers.check()
            time.sleep(0.05)


if __name__ == "__main__":
    typer.run(label_ids)
