"""All that the dashboard knows, in bounded memory.

However long the streams, however many the features, and whatever somebody else may have written
into the topics, it keeps at most 2,000,000 points (48 MB) in at most 20,000 lines, 32 MB of curves,
32 MB of whole changes and 500 short ones a stream, 64 streams, and 100,000 identities of dead
letters (20 MB). What is beyond is not shown, and the page says so.
"""

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pipeline.monitor.dashboard.curves import CurveStack
from pipeline.monitor.dashboard.letters import Letters
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.performance import Performance
from pipeline.monitor.dashboard.shares import Shares
from pipeline.monitor.dashboard.stories import MAX_CHANGES, Stories, brief
from pipeline.monitor.history import Throughput
from pipeline.monitor.past import curve_of, is_drawable
from schemas import Change, DeadLetter, Explanation, Prediction, Record
from schemas.change import Curve
from schemas.explanation import Ice, Method
from schemas.numbers import is_moderate
from schemas.prediction import LabelCounts

MAX_LINES = 20_000
"""Courses of all streams, features, methods and smoothing rates; and as many kinds of changes."""

MAX_POINTS = 2_000_000
"""Points of all lines together."""

MAX_LINE_POINTS = 2_000
"""Points of one line: three times what a screen shows, for looking closer."""

MAX_CURVE_BYTES = 32 * 1024 * 1024

MAX_STREAMS = 64

MAX_NAME = 500
"""Characters of a name: a pair of features of the longest names has 499."""

MAX_SEQ = 2**53
"""Above it a browser does not know neighbours apart."""

LAST = 10
"""Notices that are shown, the newest."""

# why records are not shown, as the page says it
NO_ROOM = "left out: they are of more streams, features or smoothing rates than there is room for"
UNFIT = "left out: their names are too long, or their numbers too large"
UNREADABLE = "left out: they are not such as the pipeline publishes"
NO_CURVE = "shown without all of their curves, which are too large or cannot be drawn"


@dataclass(slots=True)
class StreamState:
    """What is known of one stream.

    Attributes
    ----------
    lines
        (method, alpha) → feature → its course.
    curves
        (feature, alpha) → its curves.
    changes
        The newest changes in short, by seq, each with the version in which it came.
    change_count
        How many there were, of every kind.
    changed_at
        When the newest of them came, in milliseconds since 1970; 0 before the first.
    letters
        How many dead letters there were of its observations.
    """

    lines: dict[tuple[Method, float], dict[str, Line]] = field(default_factory=dict)
    curves: dict[tuple[str, float], CurveStack] = field(default_factory=dict)
    performance: Performance = field(default_factory=Performance)
    changes: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    change_count: int = 0
    changed_at: int = 0
    letters: int = 0
    records: int = 0
    labels: LabelCounts | None = None
    newest_prediction: int = -1
    newest_seq: int = -1
    throughput: Throughput = field(default_factory=Throughput)
    predicted: dict[int, int] = field(default_factory=dict)
    changed: dict[tuple[str, str | None, str | None], int] = field(default_factory=dict)


class State:
    """Takes what the pipeline publishes, each result once; one thread adds while others read.

    Parameters
    ----------
    source
        The topic whose partitions are the streams: one of which there are only dead letters is one,
        too. None if that is not known.

    Attributes
    ----------
    lock
        Held by whoever adds or reads.
    version
        How many results were taken: what came after a version is news to whoever has seen that.
    streams
        Stream → what is known of it.
    stories
        Whole changes of all streams.
    letters
        The dead letters.
    notices
        The last gaps and cold starts, of whatever stream.
    has_more_streams
        Whether there are streams for which there is no room.
    left_out
        Why → how many records are not shown, or not whole.
    operations
        What is known of the pipeline itself; see :mod:`pipeline.monitor.dashboard.feed`.
    """

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self.lock = threading.Lock()
        self.version = 0
        self.streams: dict[str, StreamState] = {}
        self.stories = Stories()
        self.letters = Letters()
        self.notices: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.has_more_streams = False
        self.left_out: Counter[str] = Counter()
        self.operations = Operations()
        self._points = Shares(MAX_POINTS)
        self._curve_bytes = Shares(MAX_CURVE_BYTES)
        self._line_count = 0
        self._changed_count = 0

    def add(self, record: Record, partition: int, now: float | None = None, *, at: int = 0) -> None:
        """Take a record; one that came before is dropped.

        Parameters
        ----------
        record
            What was published.
        partition
            Of the topic in which it stood. Within one a stream's records are in order, but for
            what is published again after a crash.
        now
            Seconds of a clock that does not run back, to know how many records come a second;
            None for history.
        at
            When its message was published, in milliseconds since 1970.
        """
        self.version += 1
        match record:
            case DeadLetter():
                self._add_letter(record)
            case Prediction() | Explanation() | Change() if not _is_fit(record):
                self.left_out[UNFIT] += 1
            case Prediction():
                self._add_prediction(record, partition, now)
            case Explanation():
                self._add_explanation(record)
            case Change():
                self._add_change(record, at)

    def _stream(self, name: str) -> StreamState | None:
        if name not in self.streams:
            if len(self.streams) >= MAX_STREAMS:
                self.left_out[NO_ROOM] += 1
                self.has_more_streams = True
                return None
            self.streams[name] = StreamState()
        return self.streams[name]

    def _add_letter(self, letter: DeadLetter) -> None:
        # the stages write letters about each other's messages too, and anybody writes anything
        if self.letters.add(letter) and letter.stream == f"{self._source}-{letter.partition}":
            stream = self._stream(letter.stream)
            if stream is not None:
                stream.letters += 1

    def _add_prediction(self, record: Prediction, partition: int, now: float | None) -> None:
        stream = self._stream(record.stream)
        if stream is None or record.seq <= stream.predicted.get(partition, -1):
            return
        stream.predicted[partition] = record.seq
        stream.records += record.observation is None
        stream.newest_seq = max(stream.newest_seq, record.seq)
        if record.seq > stream.newest_prediction:
            stream.newest_prediction, stream.labels = record.seq, record.labels
        if now is not None:
            stream.throughput.add(now)
        if record.loss is not None and is_moderate(record.loss):
            stream.performance.add(record.seq, record.loss, record.is_right)

    def _add_explanation(self, record: Explanation) -> None:
        # without an increment it says again what is known, not that something was seen
        if not record.seqs:
            return
        stream = self._stream(record.stream)
        line = None if stream is None else self._line(stream, record)
        if stream is None or line is None or record.seq <= line.seq:
            return
        value, std_error = record.value, record.std_error
        line.add(record.seq, value, std_error, version=self.version, most=self._most_points)
        stream.newest_seq = max(stream.newest_seq, record.seq)
        if record.grid is not None:
            self._add_curve(stream, record)

    @property
    def _most_points(self) -> int:
        return min(MAX_LINE_POINTS, self._points.each)

    def _line(self, stream: StreamState, record: Explanation) -> Line | None:
        key = (record.method, record.alpha)
        line = stream.lines.get(key, {}).get(record.feature)
        if line is not None:
            return line
        if self._line_count >= MAX_LINES:
            self.left_out[NO_ROOM] += 1
            return None
        self._line_count += 1
        if self._points.join():
            for each in self.streams.values():
                for line in chain.from_iterable(lines.values() for lines in each.lines.values()):
                    line.trim(self._most_points)
        line = stream.lines.setdefault(key, {})[record.feature] = Line()
        return line

    def _add_curve(self, stream: StreamState, record: Explanation) -> None:
        curve, ice = curve_of(record), _drawable_ice(record)
        is_whole = len(ice) == len(record.ice or ())
        if curve is not None:
            stack = self._stack(stream, record)
            is_whole = stack.add(curve, ice, room=self._curve_bytes.each) and is_whole
        if curve is None or not is_whole:
            self.left_out[NO_CURVE] += 1

    def _stack(self, stream: StreamState, record: Explanation) -> CurveStack:
        key = (record.feature, record.alpha)
        if key not in stream.curves:
            if self._curve_bytes.join():
                for stack in chain.from_iterable(s.curves.values() for s in self.streams.values()):
                    stack.trim(self._curve_bytes.each)
            stream.curves[key] = CurveStack()
        return stream.curves[key]

    def _add_change(self, change: Change, at: int) -> None:
        short = brief(change)
        if change.kind != "drift":
            # of another topic's partition, if the explainer or drift role tells it
            self.notices.append({**short, "stream": change.stream})
        stream = self.streams.get(change.stream)
        if stream is None and change.kind == "drift":
            stream = self._stream(change.stream)
        key = (change.kind, change.feature, change.method)
        if stream is None or change.seq <= stream.changed.get(key, -1):
            return
        if key not in stream.changed:
            if self._changed_count >= MAX_LINES:
                self.left_out[NO_ROOM] += 1
                return
            self._changed_count += 1
        stream.changed[key] = change.seq
        self.stories.add(change)
        stream.changes.append((self.version, short))
        stream.changes.sort(key=lambda each: each[1]["seq"])
        del stream.changes[:-MAX_CHANGES]
        stream.change_count += 1
        stream.changed_at = max(stream.changed_at, at)


def _is_fit(record: Prediction | Explanation | Change) -> bool:
    """Return whether a record can be kept and drawn: anybody may have written it."""
    names: tuple[str | None, ...] = (record.stream,)
    numbers: tuple[float, ...] = ()
    if isinstance(record, Explanation):
        names, numbers = (record.stream, record.feature), (record.value, record.std_error)
    elif isinstance(record, Change):
        names = (record.stream, record.feature, record.id, record.incident)
    return (
        record.seq <= MAX_SEQ
        and all(name is None or len(name) <= MAX_NAME for name in names)
        and all(map(is_moderate, numbers))
    )


def _drawable_ice(record: Explanation) -> list[Ice]:
    return [
        each
        for each in record.ice or ()
        if is_drawable(Curve(each.seq, each.grid, each.effect, record.classes))
    ]


@dataclass(slots=True)
class Operations:
    """How the pipeline does, as the broker tells.

    Attributes
    ----------
    read, to_read
        Messages of the history that were read, and that were there at the start.
    is_loaded
        Whether all of the history has been read, to where each partition ended at the start.
    roles
        For each role, or shard, the topic that it reads and how many messages of it are waiting.
    trouble
        What the page waits for: the schema registry, or a broker that does not tell the roles' lag;
        None if nothing is missing.
    """

    read: int = 0
    to_read: int = 0
    is_loaded: bool = False
    roles: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None
