"""Measures ``fluxplain why`` for an observation far back in the log: its time, and equality.

``python -m deploy.kafka run -- python -m tests.measure.why`` sends observations to a real Kafka,
and publishes the model stage's predictions, but not its reasons. Then ``why`` rebuilds the last
observation's from the log's beginning, and from a checkpoint. Without ``deploy.kafka`` it takes the
embedded broker, which keeps about 20,000 observations.
"""

import argparse
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from fluxplain.config import load_config
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot
from fluxplain.kafka.checkpoints.configured import open_store
from fluxplain.kafka.client import cluster
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.ownership.lives import FIRST
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.schemas import Prediction, Reasons
from fluxplain.stages import Message, ModelStage, process
from tests.kit.settings import write_config
from tests.kit.support import agrawal
from tests.measure.kept import Kept

SERVERS = "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS"

FLUSHED = 1_000
"""Records between two flushes of the producer."""


def settings(id_: str, features: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a forest with exact reasons for one id."""
    return {
        "features": dict.fromkeys(features, "numeric"),
        "label": {"type": "integer"},
        "model": {
            "factory": "river.forest:ARFClassifier",
            "params": {"n_models": 10, "leaf_prediction": "mc"},
        },
        "reasons": {"enabled": True, "share": 0.0001, "ids": [id_]},
    }


def replay(records: int, kept: Kept) -> None:
    """Time of ``why`` for an observation without published reasons, with an ARF-10, d = 9.

    Once it replays the log from its beginning, once from a checkpoint at nine tenths of the way.
    Columns: whether the reasons equal the model stage's at that time in all bits, but for what they
    say of earlier reasons; the seconds of the command; those of the model stage for the stream.
    """
    found = kept.run(str(records), lambda: _measured(records))
    for begin in ("beginning", "checkpoint"):
        is_equal, seconds = found[begin]
        kept.say(
            f"why, {records:,} observations, from the {begin}: {seconds:.1f} s, "
            f"{'equal' if is_equal else 'DIFFERENT'}; the model stage took {found['stage']:.1f} s"
        )


def _measured(records: int) -> dict[str, Any]:
    rows = list(agrawal(records, seed=7))
    values = [orjson.dumps({"x": x, "y": y, "id": f"loan-{i}"}) for i, (x, y) in enumerate(rows)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        servers = os.environ.get("TEST_KAFKA")
        if servers is None:
            servers = stack.enter_context(EmbeddedBroker()).bootstrap_servers
        folder, last = Path(name), f"loan-{records - 1}"
        path = write_config(folder / "fluxplain.toml", settings(last, rows[0][0]))
        os.environ[SERVERS] = servers
        os.chdir(folder)  # the checkpoints are here
        config, features = load_config(path), "features"
        create_topics(config)
        producer, stage = RecordProducer(config), ModelStage(config, f"{config.topic(features)}-0")
        store = open_store(config, cluster(config))
        slot, place = Slot("model", config.topic(features), 0), records * 9 // 10
        begin, published = time.monotonic(), b""
        for i, value in enumerate(values):
            if i == place:
                store.save(slot, Checkpoint(i, stage, FIRST))
            producer.send(config.topic(features), value, partition=0)
            for record in process(stage, Message(config.topic(features), 0, i, None, value)):
                if isinstance(record, Prediction):
                    producer.send(config.topic(record.TOPIC), record.encode(), partition=0)
                elif isinstance(record, Reasons) and record.id == last:
                    published = record.encode()
            if i % FLUSHED == 0:
                producer.flush()
        producer.flush()
        found: dict[str, Any] = {"stage": time.monotonic() - begin}
        found["checkpoint"] = _why(last, published)
        shutil.rmtree(config.checkpoint.directory)
        found["beginning"] = _why(last, published)
        return found


def _why(id_: str, published: bytes) -> tuple[bool, float]:
    """Return whether the command finds the same reasons, and after how many seconds."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "fluxplain", "why", id_, "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    seconds = time.monotonic() - begin
    first, again = (
        replace(Reasons.decode(each), previous_seq=None, skipped=0).encode()
        for each in (published, output)  # a replay gives reasons for this observation only
    )
    return first == again, seconds


def main() -> None:
    """Measure it."""
    parser = argparse.ArgumentParser(prog="python -m tests.measure.why")
    parser.add_argument("--records", type=int, default=50_000, help="observations of the log")
    parser.add_argument("--out", type=Path, help="folder of the results")
    given = parser.parse_args()
    out = None if given.out is None else given.out.absolute()
    kept = Kept(out, "tests.measure.why", "replay", {})
    replay(given.records, kept)
    kept.write_page("Reasons of earlier observations", inspect.getdoc(replay) or "")


if __name__ == "__main__":
    main()
