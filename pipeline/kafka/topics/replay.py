"""Sends observations to ``features``, with backpressure so that the embedded broker loses none."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event

import orjson

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, TopicPartition, cluster, partitions_of
from fluxplain.kafka.embedded import PARTITION_BYTES, is_embedded_cluster
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import COMMAND_DEADLINE_S
from fluxplain.kafka.topics.progress import PipelineProgress
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import LateLabel
from fluxplain.schemas.late_label import LabelValue

SAFE_SHARE = 0.4
"""Share of an embedded partition that may be unread: the rest is for messages in flight."""

FIRST_WINDOW = 150
"""Largest number of records in flight before their size downstream is known."""

POLL_S = 0.1

Report = Callable[[int, int], None]
"""Called with (records sent, records processed by all roles)."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Target partition of ``features``, rate and backpressure of a replay.

    A source is one stream, so it has one partition. ``rate`` limits records per second; None for no
    limit. ``max_lag`` limits records that not all roles have processed; None for the capacity of
    the embedded broker, and for no limit on any other.
    """

    partition: int = 0
    rate: float | None = None
    max_lag: int | None = None


def replay(
    config: Config,
    observations: Iterable[bytes | LabelValue],
    options: ReplayOptions,
    *,
    report: Report = lambda _sent, _through: None,
    stop: Event | None = None,
) -> int:
    """Send the observations and return their number; ends early when ``stop`` is set.

    Late labels, :class:`~schemas.late_label.LabelValue`, go to their own topic if there is one, and
    are not counted then. Raises ``BrokerError`` or ``DeliveryError``.
    """
    topic, labels = (config.topic(name) for name in ("features", LateLabel.TOPIC))
    _check_partition(config, topic, options.partition)
    producer = RecordProducer(config, deadline_s=COMMAND_DEADLINE_S)
    stop = stop or Event()
    is_embedded = is_embedded_cluster(cluster(config))
    brake = None
    if is_embedded or options.max_lag is not None:
        brake = _Brake(config, options, _ByteMeter(config) if is_embedded else None)
    started_at = time.monotonic()
    sent = apart = 0
    try:
        for each in observations:
            if options.rate:
                due_at = started_at + (sent + apart) / options.rate
                time.sleep(max(due_at - time.monotonic(), 0.0))
            value, is_label = (each.value, True) if isinstance(each, LabelValue) else (each, False)
            if brake:
                brake.grow(len(value))
                brake.wait(sent, producer, report, stop)
            if stop.is_set():
                break
            if is_label and config.label.topic:
                producer.send(labels, value, partition=options.partition)
                apart += 1
                continue
            producer.send(topic, value, partition=options.partition)
            sent += 1
            if sent % 100 == 0:
                report(sent, brake.through if brake else sent)
        producer.flush()
    finally:  # also after Ctrl-C
        report(sent, brake.through if brake else sent)
        if brake:
            brake.close()
    return sent


def _check_partition(config: Config, topic: str, partition: int) -> None:
    count = len(partitions_of(config, topic))
    if not 0 <= partition < count:
        raise BrokerError(
            f"partition {partition} does not exist: {topic} has partitions 0 to {count - 1}"
        )


class _Brake:
    """Waits while too many records are in flight."""

    def __init__(self, config: Config, options: ReplayOptions, meter: "_ByteMeter | None") -> None:
        self._progress = PipelineProgress(config, options.partition)
        self._max_lag = options.max_lag
        self._meter = meter
        self._begin = self._progress.end_of_features()
        self._window = self._open_window()

    @property
    def through(self) -> int:
        """Records of this replay that all roles have processed."""
        return max(self._progress.through - self._begin, 0)

    def grow(self, size: int) -> None:
        """Adapt the window to the size of the next record."""
        if self._meter and size > self._meter.largest_input:
            self._meter.largest_input = size
            self._window = self._open_window()

    def wait(self, sent: int, producer: RecordProducer, report: Report, stop: Event) -> None:
        if self._in_flight(sent) < self._window:
            return
        producer.flush()
        while not stop.is_set():
            self._progress.update()
            self._window = self._open_window()
            report(sent, self.through)
            # let half of the window drain, to save requests to the broker
            if self._in_flight(sent) <= self._window // 2:
                return
            time.sleep(POLL_S)

    def close(self) -> None:
        self._progress.close()
        if self._meter:
            self._meter.close()

    def _in_flight(self, sent: int) -> int:
        # includes earlier records: they share the broker's memory
        return self._begin + sent - self._progress.through

    def _open_window(self) -> int:
        limits = [self._max_lag] if self._max_lag else []
        if self._meter:
            limits.append(self._meter.records_that_fit())
        return max(min(limits), 2)


class _ByteMeter:
    """Measures the bytes per observation in the fullest partition downstream."""

    def __init__(self, config: Config) -> None:
        self._reader = TopicReader(config, ["evaluations", "explanations"], from_beginning=True)
        self.largest_input = 1
        self._partitions: dict[TopicPartition, _Traffic] = {}

    def records_that_fit(self) -> int:
        """Return how many observations may be in flight without evicting unread messages."""
        while messages := self._reader.poll(0.01):
            for message in messages:
                tp = TopicPartition(self._reader.name(message), message.partition() or 0)
                value = message.value() or b""
                if seqs := _seqs(value):
                    self._partitions.setdefault(tp, _Traffic()).add(len(value), seqs)
        downstream = [traffic.bytes_per_record for traffic in self._partitions.values()]
        fit = int(SAFE_SHARE * PARTITION_BYTES / max(self.largest_input, *downstream, 1))
        return fit if downstream else min(fit, FIRST_WINDOW)

    def close(self) -> None:
        self._reader.close()


@dataclass(slots=True)
class _Traffic:
    """Bytes of a partition, and the range of their observations."""

    total: int = 0
    first: int | None = None
    last: int = 0

    @property
    def bytes_per_record(self) -> float:
        return self.total / max(self.last - (self.first or 0) + 1, 1)

    def add(self, size: int, seqs: list[int]) -> None:
        self.total += size
        self.first = seqs[0] if self.first is None else min(self.first, seqs[0])
        self.last = max(self.last, seqs[-1])


def _seqs(value: bytes) -> list[int]:
    """Return a message's ``seqs``; none if it is malformed."""
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        return []
    seqs = fields.get("seqs") if isinstance(fields, dict) else None
    return [seq for seq in seqs if isinstance(seq, int)] if isinstance(seqs, list) else []
