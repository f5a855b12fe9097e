"""Metrics of the records that a worker publishes.

Observing a record only updates dictionaries. The families are made when Prometheus scrapes, in the
thread of the health server: it reads copies, which Python makes atomically.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict

from prometheus_client import Metric
from prometheus_client.registry import Collector

from fluxplain.config import Config
from fluxplain.explain.parameter_checks import ALL
from fluxplain.kafka.metrics.families import Labels, counter, gauge
from fluxplain.schemas import (
    PUBLISHED,
    Change,
    Control,
    Evaluation,
    Explanation,
    Prediction,
    Record,
)
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.prediction import LabelCounts

MAX_NAMES = 50
"""Largest number of features, and of streams, with their own series: there is one per importance of
each of them."""

OTHER = "(other)"
"""Label of all features, or streams, beyond these."""

RECENT = 500
"""Number of labelled predictions in the mean loss; the same as in ``fluxplain watch``."""


class PublishedCollector(Collector):
    """Counts the records that a worker publishes; its role or shard labels all metrics.

    Memory is bounded: only the first 50 features and streams have series.
    """

    def __init__(self, config: Config, role: str) -> None:
        self._role = role
        explained = config.explained
        self._features = frozenset(explained[:MAX_NAMES])
        self._features_left_out = len(explained) - len(self._features)
        self._streams = _First()
        self._streams_of_changes = _First()
        self._draws = _draws(config)
        own = config.own_streams
        self._own_draws = {name: _draws(each) for name, each in own.items()}
        self._records = {kind.TOPIC: 0 for kind in PUBLISHED}
        if config.is_joined:
            self._records |= {config.source: 0, Control.TOPIC: 0}
        self._inputs: dict[Method, int] = dict.fromkeys(METHODS, 0)
        self._changes: dict[Labels, int] = {}
        self._newest: dict[str, int] = {}
        self._losses: dict[str, deque[float]] = {}
        self._labels: dict[str, LabelCounts] = {}
        self._importances: dict[tuple[str, str, str, float], tuple[float, float | None]] = {}

    def observe(self, record: Record) -> None:
        """Count one record, or a run of evaluations."""
        n = 1
        if isinstance(record, Explanation):
            self._see_explanation(record)
        elif isinstance(record, Prediction):
            self._see_prediction(record)
        elif isinstance(record, Evaluation):
            self._see_evaluations(record)
            n = len(record.seqs)
        elif isinstance(record, Change):
            self._see_change(record)
        self._records[record.TOPIC] += n

    def forget(self) -> None:
        """Drop gauges on revocation; the new owner exports them.

        Counters stay: Prometheus would take a smaller value for a restart.
        """
        self._streams = _First()
        self._newest.clear()
        self._losses.clear()
        self._labels.clear()
        self._importances.clear()

    def _see_evaluations(self, run: Evaluation) -> None:
        self._see_seq(run.stream, run.seqs[-1])
        for method, blocks in run.outputs.items():
            if METHODS[method].averages:
                draws = self._own_draws.get(run.stream, self._draws)
                asked = [block for block in blocks if block is not None and len(block)]
                self._inputs[method] += draws[method] * len(asked)
            else:
                self._inputs[method] += sum([len(block) for block in blocks if block is not None])

    def _see_explanation(self, record: Explanation) -> None:
        if self._see_seq(record.stream, record.seq) and record.feature in self._features:
            key = (record.stream, record.feature, record.method, record.alpha)
            self._importances[key] = (record.value, record.std_error)

    def _see_prediction(self, record: Prediction) -> None:
        if not self._see_seq(record.stream, record.seq):
            return
        if record.labels is not None:
            self._labels[record.stream] = record.labels
        if record.loss is not None:
            losses = self._losses.get(record.stream)
            if losses is None:
                losses = self._losses[record.stream] = deque(maxlen=RECENT)
            losses.append(record.loss)

    def _see_change(self, record: Change) -> None:
        if record.is_follow_up:
            return
        feature = record.feature or ""
        key = (
            self._role,
            record.stream if self._streams_of_changes.has(record.stream) else OTHER,
            record.kind,
            record.method or "",
            feature if not feature or feature in self._features else OTHER,
        )
        self._changes[key] = self._changes.get(key, 0) + 1

    def _see_seq(self, stream: str, seq: int) -> bool:
        """Record the newest seq of a stream; return whether the stream has series."""
        has_series = self._streams.has(stream)
        if has_series and seq > self._newest.get(stream, -1):
            self._newest[stream] = seq
        return has_series

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        role = self._role
        streams_left_out = self._streams.left_out | self._streams_of_changes.left_out
        yield counter(
            "fluxplain_records_published",
            "Records published to a topic, including those published again after a crash; "
            "evaluations count once for each observation and feature.",
            ["role", "topic"],
            {(role, topic): n for topic, n in self._records.copy().items()},
        )
        yield gauge(
            "fluxplain_newest_seq",
            "Seq of the newest observation in the published records of a stream.",
            ["role", "stream"],
            {(role, stream): seq for stream, seq in self._newest.copy().items()},
        )
        yield counter(
            "fluxplain_evaluation_inputs",
            "Changed inputs on which the model was evaluated for the published evaluations; for "
            "isage inner_samples per feature.",
            ["role", "method"],
            {(role, method): n for method, n in self._inputs.copy().items()},
        )
        yield gauge(
            "fluxplain_loss",
            f"Mean loss of the last {RECENT} labelled predictions of a stream.",
            ["role", "stream"],
            {(role, stream): _mean(each) for stream, each in self._losses.copy().items()},
        )
        yield gauge(
            "fluxplain_late_labels",
            "Late labels of a stream: observations that wait for their label (waiting), labels "
            "joined with their observation (joined), observations whose label never arrived in "
            "time (missing), labels that repeat a known one (repeated), and labels without an "
            "observation (unknown).",
            ["role", "stream", "state"],
            {
                (role, stream, state): n
                for stream, counts in self._labels.copy().items()
                for state, n in asdict(counts).items()
            },
        )
        yield from self._importance_families()
        yield counter(
            "fluxplain_changes",
            "Published changes, cold starts, gaps, and notices about schemas and models; method "
            "and feature are empty for notices about neither.",
            ["role", "stream", "kind", "method", "feature"],
            self._changes.copy(),
        )
        yield gauge(
            "fluxplain_names_left_out",
            f"Features, groups and pairs, or streams, beyond the first {MAX_NAMES}, which have no "
            f"series of their own; their changes count as those of {OTHER}.",
            ["role", "of"],
            {(role, "feature"): self._features_left_out, (role, "stream"): len(streams_left_out)},
        )

    def _importance_families(self) -> Iterator[Metric]:
        labels = ["role", "stream", "feature", "method", "alpha"]
        importances = {
            (self._role, stream, feature, method, f"{alpha:g}"): both
            for (stream, feature, method, alpha), both in self._importances.copy().items()
        }
        yield gauge(
            "fluxplain_importance",
            "Latest importance of a feature, group or pair, in units of the loss (ipfi, isage), of "
            "the output (ipdp, ishap) or of the squared output (interaction).",
            labels,
            {key: value for key, (value, _) in importances.items()},
        )
        yield gauge(
            "fluxplain_importance_std_error",
            "Standard error of the latest importance, in the same units.",
            labels,
            {key: error for key, (_, error) in importances.items() if error is not None},
        )


class _First:
    """The first `MAX_NAMES` different names, which have their own series."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self.left_out: set[str] = set()

    def has(self, name: str) -> bool:
        """Return whether a name has series."""
        if name in self._names:
            return True
        if len(self._names) < MAX_NAMES:
            self._names.add(name)
            return True
        self.left_out.add(name)
        return False


def _draws(config: Config) -> dict[Method, int]:
    """Return how many draws an output of each method is the mean of."""
    tables = {name: config.explain.of(name) for name, info in METHODS.items() if info.averages}
    return {
        name: table.reservoir_size if table.inner_samples == ALL else int(table.inner_samples)
        for name, table in tables.items()
    }


def _mean(losses: deque[float]) -> float:
    recent = losses.copy()
    return sum(recent) / len(recent)
