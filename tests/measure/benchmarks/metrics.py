"""What it costs a worker to count for Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from faust.sensors import Monitor
from faust.sensors.prometheus import FaustMetrics, PrometheusMonitor
from faust.types import TP
from prometheus_client import CollectorRegistry

from fluxplain.config import Config
from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.metrics.worker_metrics import WorkerMetrics
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.schemas import Evaluation, Explanation, Record
from fluxplain.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage, process
from fluxplain.stages.metering import Work
from tests.kit.recorder import Recorder
from tests.measure.benchmarks.rig import ALL, observations, settings
from tests.measure.benchmarks.timing import BLOCK, Figure, Run, Stopwatch, share

RECORDS = 3_000

MESSAGES = 20_000

CALLS: tuple[dict[Work, int], ...] = (
    {"prediction": 1, "ipfi": 9, "isage": 16, "ipdp": 90},
    {"learning": 1},
)
"""What a record's calls of the model are for."""

MESSAGE: Any = SimpleNamespace()
"""The monitors write the time into it, and read nothing."""


def counting(_run: Run) -> Iterator[Figure]:
    """Measure what taking note of records and steps costs, beside the stages and beside Faust.

    The stages run one behind the other in one process, and behind each message its metrics take
    note as they do in a worker that has a backlog: of evaluations as they leave, many observations
    in one. Then Faust's plain monitor and its monitor for Prometheus take note of messages, in
    turns.
    """
    config = Config(**settings(ALL))
    roles: list[tuple[Role, type[Record] | None]] = [
        ("model", Evaluation),
        ("explainer", Explanation),
        ("drift", None),
    ]
    stages: dict[Role, Stage] = {
        "model": ModelStage(config, f"{config.topic('features')}-0"),
        "explainer": ExplainerStage(config),
        "drift": DriftStage(config),
    }
    inputs = [_message(config, "features", i, v) for i, v in enumerate(observations(RECORDS))]
    for role, passed_on in roles:
        watch, sent, outputs = Stopwatch(), list[Record](), list[Record]()
        outbox = Outbox(config, cast(RecordProducer, Recorder()), 4, sent.append)
        metrics = WorkerMetrics(config, Replica(role))
        for i, message in enumerate(inputs, 1):
            for record in watch.time("stage", process, stages[role], message):
                outbox.send(record, None, 0)
            if i % BLOCK == 0:
                outbox.send_all()
            watch.time("metrics", _take_note, metrics, sent, CALLS if role == "model" else ())
            outputs += [each for each in sent if passed_on and isinstance(each, passed_on)]
            sent.clear()
        yield share(
            f"{role}: metrics of a message, as a share of its step",
            watch,
            ("metrics",),
            ("stage",),
        )
        inputs = [_message(config, r.TOPIC, i, r.encode()) for i, r in enumerate(outputs)]
    yield _monitors()


def _take_note(
    metrics: WorkerMetrics, records: Sequence[Record], calls: Sequence[Mapping[Work, int]]
) -> None:
    for shares in calls:
        metrics.model(shares, bool)
    for record in records:
        metrics.published.observe(record)
    metrics.step.observe(0.001)


def _monitors() -> Figure:
    """Return what Faust's monitor costs a message, against its monitor for Prometheus."""
    watch, tp = Stopwatch(), TP("features", 0)
    monitors = {
        "plain": Monitor(),
        "prometheus": PrometheusMonitor(FaustMetrics.create(CollectorRegistry(), "bench")),
    }
    for offset in range(MESSAGES):
        for name, monitor in monitors.items():
            watch.time(name, monitor.on_message_in, tp, offset, MESSAGE)
    return share(
        "Faust's monitor: a message taken, against its monitor for Prometheus",
        watch,
        ("plain",),
        ("prometheus",),
    )


def _message(config: Config, topic: str, offset: int, value: bytes) -> Message:
    return Message(config.topic(topic), 0, offset, None, value)
