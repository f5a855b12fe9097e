"""Measures ``fluxplain checkpoints adopt``: how long the replays of all roles take.

``python -m deploy.kafka run -- python -m tests.measure.adoption`` sends observations to a real
Kafka, lets workers explain them, stops these, and adopts their states under another version of
River, with the same bits. Without ``deploy.kafka`` it takes the embedded broker, which has four
partitions.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import orjson

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from tests.kit.kafka_pipeline import wait_until_idle
from tests.kit.other_versions import installed
from tests.kit.settings import write_config
from tests.kit.workers import Workers


def observations(n: int, features: int, seed: int) -> list[bytes]:
    """Return observations of numbers, whose label depends on two of them."""
    rng = random.Random(seed)
    rows = [{f"f{i}": rng.gauss(0.0, 1.0) for i in range(features)} for _ in range(n)]
    return [orjson.dumps({"x": x, "y": int(x["f0"] + x["f1"] > 0.0)}) for x in rows]


def measure(servers: str, folder: Path, asked: argparse.Namespace) -> None:
    """Print the output of the command, and its seconds."""
    config_path = write_config(
        folder / "pipeline.toml",
        {
            "features": {f"f{i}": "numeric" for i in range(asked.features)},
            "label": {"type": "integer"},
            "model": {
                "factory": "river.forest:ARFClassifier",
                "params": {"n_models": asked.trees, "seed": 1},
            },
            "topics": {
                "prefix": f"adoption-{os.getpid()}.",
                "replication": 1,
                "features_partitions": asked.partitions,
                "partitions": asked.partitions,
            },
        },
    )
    with Workers(config_path, servers, folder) as workers:
        producer = RecordProducer(workers.config)
        for partition in range(asked.partitions):
            for value in observations(asked.observations, asked.features, partition):
                topic = workers.config.topic("features")
                producer.send(topic, value, partition=partition)
        producer.flush()
        began_at = time.monotonic()
        for replica in workers.config.replicas():
            workers.add(replica)
        wait_until_idle(workers.config, workers.attend, timeout_s=7_200.0)
        print(f"the workers took {time.monotonic() - began_at:.0f} s", flush=True)
    newer = installed(folder / "river", "river", "9.9.9")
    path = os.pathsep.join([str(newer), os.environ.get("PYTHONPATH", "")])
    words: Sequence[str] = ("checkpoints", "adopt", "--yes", "--config", str(config_path))
    command = [sys.executable, "-m", "fluxplain.cli", *words, "--messages", str(asked.messages)]
    began_at, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, env={**os.environ, **workers.added, "PYTHONPATH": path}, check=True, cwd=folder
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"the command took {time.monotonic() - began_at:.0f} s, {cpu_s:.0f} s of the processor")


def main() -> None:
    """Measure once, on the real broker if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure.adoption", description=__doc__)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--observations", type=int, default=3_000, help="of each partition")
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--messages", type=int, default=1_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        servers = os.environ.get("TEST_KAFKA")
        if servers is None:
            servers = stack.enter_context(EmbeddedBroker()).bootstrap_servers
        measure(servers, Path(name), asked)


if __name__ == "__main__":
    main()
