"""One kind of model through the pipeline on Kafka, beside the reference."""

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fluxplain.config import Config
from fluxplain.evaluate import choose
from fluxplain.stages import Message, ModelStage, process
from fluxplain.stages.metering import Work
from tests.kit.kafka_pipeline import KafkaPipeline, Published, records_of, reference
from tests.kit.settings import topics, write_config
from tests.models.kinds import FAULT, Kind, messages

T = TypeVar("T")

WARM = 200
"""Records before those whose pace is measured: workers have started, and reservoirs are full."""


@dataclass(frozen=True)
class Result:
    """Measurements of one kind.

    `different` counts published records that are missing in the reference or differ by a bit;
    `rate` is in records a second through all roles; `ratio` in seconds of asking for each second of
    learning (None: never learns); `state` in bytes of the model role's state.
    """

    title: str
    adapter: str
    label: str
    evaluator: str
    broker: str
    records: int
    published: int
    different: int
    dead_letters: int
    figure: str
    ipfi: str
    isage: str
    rate: float
    ratio: float | None
    state: int


class Seconds:
    """What asking and learning take: a :class:`~fluxplain.stages.metering.Meter`."""

    def __init__(self) -> None:
        self.asking = 0.0
        self.learning = 0.0

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        began_at = time.perf_counter()
        result = call()
        taken = time.perf_counter() - began_at
        if "learning" in shares:
            self.learning += taken
        else:
            self.asking += taken
        return result


def run(kind: Kind, records: int, folder: Path, servers: str, broker: str, prefix: str) -> Result:
    path = folder / "pipeline.toml"
    settings = {**kind.settings(folder), "topics": topics(prefix)}
    values = messages(kind.stream, records)
    with KafkaPipeline(write_config(path, settings), servers, folder) as pipeline:
        pipeline.process(values[:WARM])
        began_at = time.perf_counter()
        pipeline.feed(values[WARM:])
        pipeline.wait_until_idle(timeout_s=600.0)
        rate = (records - WARM) / (time.perf_counter() - began_at)
    config, published = pipeline.config, pipeline.published
    seconds, state = alone(config, values)
    return Result(
        title=kind.title,
        adapter=kind.adapter,
        label=kind.label,
        evaluator=choose(config.make_model(), config.model.evaluator).kind,
        broker=broker,
        records=records,
        published=len(published),
        different=differences(published, reference(config, values)),
        dead_letters=pipeline.counts()["dead-letters"],
        figure=figure(kind.label, records, records_of(published, "predictions")),
        ipfi=most_important("ipfi", records_of(published, "explanations")),
        isage=most_important("isage", records_of(published, "explanations")),
        rate=rate,
        ratio=seconds.asking / seconds.learning if seconds.learning else None,
        state=state,
    )


def alone(config: Config, values: Sequence[bytes]) -> tuple[Seconds, int]:
    stage = ModelStage(config, f"{config.topic('features')}-0")
    stage.meter = seconds = Seconds()
    for seq, value in enumerate(values):
        process(stage, Message(config.topic("features"), 0, seq, None, value))
    return seconds, len(pickle.dumps(stage))


def differences(published: Published, expected: Published) -> int:
    return sum(
        published.get(key) != expected.get(key) for key in published.keys() | expected.keys()
    )


def figure(label: str, records: int, predictions: Sequence[Mapping[str, Any]]) -> str:
    """Return how good predictions were: accuracy, mean error, or the score of faults and others."""
    given = [record for record in predictions if record["prediction"] is not None]
    if label == "none":
        fault = [r["prediction"] for r in given if r["seq"] >= FAULT * records]
        other = [r["prediction"] for r in given if WARM <= r["seq"] < FAULT * records]
        return f"score {_mean(other):.3g}, of the fault {_mean(fault):.3g}"
    if label == "number":
        return f"mean error {_mean([r['loss'] for r in given]):.3g}"
    return f"accuracy {_mean([r['prediction'] == r['y'] for r in given]):.1%}"


def most_important(method: str, explanations: Sequence[Mapping[str, Any]]) -> str:
    last = {r["feature"]: r["value"] for r in explanations if r["method"] == method}
    best = max(last, key=lambda feature: last[feature])
    return f"{best} {last[best]:.3g}"


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
