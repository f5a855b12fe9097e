"""What has been published so far, in bounded memory: for the terminal, the demo and the plots."""

from bisect import insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pipeline.monitor.rates import Rates
from schemas import Change, DeadLetter, Explanation, Prediction, Record
from schemas.explanation import METHODS, Method
from schemas.numbers import is_moderate
from schemas.prediction import LabelCounts

MAX_POINTS = 2_000
"""Points kept of each explanation: more than a figure or a terminal can show."""

MAX_CHANGES = 2_000
"""Changes kept of each stream, the newest."""

COURSE_EVERY = 20
"""Predictions between two points of the courses of loss and accuracy."""

MAX_ALPHAS = 10

RECENT = 500
"""Labelled predictions that the mean loss and the accuracy are about."""

MAX_SEEN = 100_000
"""Identities remembered, where records may come out of order; a few MB."""

PATIENCE = 1_000
"""Records of other streams, after which a silent stream is no longer the one that is shown."""


class Point(NamedTuple):
    """One explanation, reduced to what is drawn."""

    seq: int
    value: float
    std_error: float


T = TypeVar("T")


class Series(Generic[T]):
    """Points in order, thinned evenly: whenever too many, every other one is dropped.

    Examples
    --------
    >>> series = Series[Point](max_points=4)
    >>> for seq in range(10):
    ...     series.add(Point(seq, 0.0, 0.0))
    >>> [point.seq for point in series.points]
    [0, 4, 8, 9]
    """

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._kept: list[T] = []
        self._last: T | None = None
        self._stride = 1
        self._n = 0

    def add(self, point: T) -> None:
        """Append a point."""
        if self._n % self._stride == 0:
            self._kept.append(point)
        self._n += 1
        self._last = point
        if len(self._kept) >= self._max_points:
            self._kept = self._kept[::2]
            self._stride *= 2

    @property
    def points(self) -> list[T]:
        """The points that are left; always the first and the newest."""
        if self._last is None or self._kept[-1] is self._last:
            return list(self._kept)
        return [*self._kept, self._last]


class Seen:
    """Identities seen so far, in whatever order they come.

    Predictions are keyed as the observations, so a stream's predictions are spread over
    partitions and a consumer gets them out of order. Of too many the oldest half is forgotten:
    what is not above it then counts as seen.
    """

    def __init__(self, max_seen: int = MAX_SEEN) -> None:
        self._max_seen = max_seen
        self._floor: Any = None
        self._above: set[Any] = set()

    def add(self, identity: Any) -> bool:
        """Return whether the identity is new, and remember it. Identities must be ordered."""
        if identity in self._above or (self._floor is not None and identity <= self._floor):
            return False
        self._above.add(identity)
        if len(self._above) > self._max_seen:
            ordered = sorted(self._above)
            half = len(ordered) // 2
            self._floor, self._above = ordered[half - 1], set(ordered[half:])
        return True


class Throughput:
    """Records a second over the last seconds; the clock is the caller's.

    Examples
    --------
    >>> throughput = Throughput(window_s=5.0)
    >>> for tick in range(100):
    ...     throughput.add(now=1000.0 + tick / 10)
    >>> round(throughput.rate(now=1010.0))
    10
    """

    SLOT_S = 0.25
    """Records within that time are counted together, so that memory is bounded."""

    def __init__(self, window_s: float = 5.0) -> None:
        self._window_s = window_s
        self._slots: deque[tuple[float, int]] = deque(maxlen=int(window_s / self.SLOT_S) + 2)
        self._start: float | None = None

    def add(self, now: float) -> None:
        """Count one record at time ``now``, in seconds of any clock that does not run back."""
        if self._start is None:
            self._start = now
        if self._slots and now - self._slots[-1][0] < self.SLOT_S:
            start, n = self._slots.pop()
            self._slots.append((start, n + 1))
        else:
            self._slots.append((now, 1))

    def rate(self, now: float) -> float:
        """Return records a second; 0 before a second has gone by."""
        if self._start is None or now - self._start < 1.0:
            return 0.0
        n = sum(n for start, n in self._slots if now - start <= self._window_s)
        return n / min(self._window_s, now - self._start)


Key = tuple[str, Method]
"""A feature and a method."""


@dataclass(slots=True)
class StreamHistory:
    """What is known of one stream.

    Attributes
    ----------
    alpha
        The smoothing rate of the explanations that are kept; None before the first.
    alphas
        The rates that there were, at most 10.
    predictions
        How many observations were predicted.
    labels
        Of labels that come later, as the newest prediction says.
    newest_seq
        The newest observation that was predicted or explained; -1 before the first.
    latest
        (feature, method) → the newest explanation.
    before_drift
        The same at the known drift, if the history was told of one.
    series
        (feature, method) → its course.
    loss_course, accuracy_course
        The courses of the mean loss and the accuracy of the last 500 labelled predictions.
    changes
        The newest changes, by seq; of every kind.
    change_count
        How many changes there were, including those that are no longer kept.
    """

    alpha: float | None = None
    alphas: list[float] = field(default_factory=list)
    predictions: int = 0
    labels: LabelCounts | None = None
    newest_prediction: int = -1
    newest_seq: int = -1
    latest: dict[Key, Explanation] = field(default_factory=dict)
    before_drift: dict[Key, Explanation] = field(default_factory=dict)
    series: dict[Key, Series[Point]] = field(default_factory=dict)
    loss_course: Series[Point] = field(default_factory=Series)
    accuracy_course: Series[Point] = field(default_factory=Series)
    changes: list[Change] = field(default_factory=list)
    change_count: int = 0
    throughput: Throughput = field(default_factory=Throughput)
    last_add: int = 0
    seen: Seen = field(default_factory=Seen)
    changes_seen: dict[tuple[str, str | None, str | None], int] = field(default_factory=dict)
    losses: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    hits: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))

    @property
    def features(self) -> list[str]:
        """The explained features, in the order in which they came."""
        return list(dict.fromkeys(feature for feature, _ in self.latest))

    @property
    def methods(self) -> list[Method]:
        """The methods that there are explanations of."""
        present = {method for _, method in self.latest}
        return [method for method in METHODS if method in present]

    @property
    def mean_loss(self) -> float | None:
        """Mean loss of the last 500 labelled predictions; None without any."""
        return sum(self.losses) / len(self.losses) if self.losses else None

    @property
    def accuracy(self) -> float | None:
        """Share of right ones among the last 500 labelled predictions; None for regression."""
        return sum(self.hits) / len(self.hits) if self.hits else None


class History:
    """Accumulates what the pipeline publishes, each result once.

    Memory is bounded for a bounded number of streams and features: courses are thinned, of the
    changes the newest are kept, and of predictions and dead letters only their number.

    Parameters
    ----------
    drift_seq
        Where the stream is known to change: the seq of the first observation that differs. The
        explanations just before it are kept. None if nothing is known.
    rates
        Of explanations with several smoothing rates, which to keep, as soon as there are any with
        it. Before, and if it is None, the rate that comes first is kept.

    Attributes
    ----------
    streams
        Stream → what is known of it, in the order in which they came.
    dead_letters
        How many there were, of all streams and topics.
    last_dead_letter
        The last one that came.
    """

    def __init__(self, *, drift_seq: int | None = None, rates: Rates | None = None) -> None:
        self.drift_seq = drift_seq
        self.rates = rates or Rates()
        self.streams: dict[str, StreamHistory] = {}
        self.dead_letters = 0
        self.last_dead_letter: DeadLetter | None = None
        self._letters_seen: dict[tuple[str, int], Seen] = {}
        self._current: str | None = None
        self._n = 0

    @classmethod
    def of(cls, records: Iterable[Record], *, drift_seq: int | None = None) -> Self:
        """Return the history of some records."""
        history = cls(drift_seq=drift_seq)
        for record in records:
            history.add(record)
        return history

    @property
    def current(self) -> str | None:
        """The stream to show: one with new data, and the same one as long as it has any."""
        return self._current

    def add(self, record: Record, now: float | None = None) -> bool:
        """Take a record; return whether it was new.

        A record that came before, by its identity, is dropped; so is one of another kind, such as
        an evaluation, an explanation with another smoothing rate or without anything new, and one
        with numbers too large to be shown: it is not ours.

        Parameters
        ----------
        record
            What was published.
        now
            The time in seconds of the caller's clock (``time.monotonic()``), to know how many
            records come a second; None if nobody asks for that.
        """
        if isinstance(record, DeadLetter):
            return self._add_dead_letter(record)
        if not isinstance(record, Prediction | Explanation | Change):
            return False
        stream = self.streams.setdefault(record.stream, StreamHistory())
        if isinstance(record, Prediction):
            new = _add_prediction(stream, record, now)
        elif isinstance(record, Explanation):
            wanted = self.rates.of(record.stream)
            new = _add_explanation(stream, record, self.drift_seq, wanted)
        else:
            new = _add_change(stream, record)
        if new:
            self._n += 1
            stream.last_add = self._n
            self._choose(record.stream)
        return new

    def _choose(self, newest: str) -> None:
        # a display that jumped between streams with every record could not be read
        if self._current is None or self._n - self.streams[self._current].last_add > PATIENCE:
            self._current = newest

    def _add_dead_letter(self, letter: DeadLetter) -> bool:
        seen = self._letters_seen.setdefault((letter.topic, letter.partition), Seen())
        if not seen.add((letter.offset, letter.key or "")):
            return False
        self.dead_letters += 1
        self.last_dead_letter = letter
        return True


def _add_prediction(stream: StreamHistory, record: Prediction, now: float | None) -> bool:
    if not stream.seen.add(record.seq):
        return False
    stream.predictions += record.observation is None
    stream.newest_seq = max(stream.newest_seq, record.seq)
    if record.seq > stream.newest_prediction:
        stream.newest_prediction, stream.labels = record.seq, record.labels
    if record.loss is not None:
        stream.losses.append(record.loss)
    if record.is_right is not None:
        stream.hits.append(record.is_right)
    if stream.predictions % COURSE_EVERY == 0:
        if stream.mean_loss is not None:
            stream.loss_course.add(Point(stream.newest_seq, stream.mean_loss, 0.0))
        if stream.accuracy is not None:
            stream.accuracy_course.add(Point(stream.newest_seq, stream.accuracy, 0.0))
    if now is not None:
        stream.throughput.add(now)
    return True


def _add_explanation(
    stream: StreamHistory, record: Explanation, drift_seq: int | None, wanted_alpha: float | None
) -> bool:
    if not (is_moderate(record.value) and is_moderate(record.std_error)) or not record.seqs:
        return False
    if record.alpha not in stream.alphas and len(stream.alphas) < MAX_ALPHAS:
        stream.alphas.append(record.alpha)
    if stream.alpha is None or (record.alpha == wanted_alpha != stream.alpha):
        stream.alpha = record.alpha
        # those with another rate, if there were any, are no longer shown
        stream.latest, stream.before_drift, stream.series = {}, {}, {}
    if record.alpha != stream.alpha:
        return False
    key = (record.feature, record.method)
    latest = stream.latest.get(key)
    if latest is not None and record.seq <= latest.seq:
        return False
    stream.latest[key] = record
    if drift_seq is not None and record.seq < drift_seq:
        stream.before_drift[key] = record
    point = Point(record.seq, record.value, record.std_error)
    stream.series.setdefault(key, Series()).add(point)
    stream.newest_seq = max(stream.newest_seq, record.seq)
    return True


def _add_change(stream: StreamHistory, record: Change) -> bool:
    key = (record.kind, record.feature, record.method)
    if record.seq <= stream.changes_seen.get(key, -1):
        return False
    stream.changes_seen[key] = record.seq
    insort(stream.changes, record, key=lambda change: change.seq)
    del stream.changes[:-MAX_CHANGES]
    stream.change_count += 1
    return True
