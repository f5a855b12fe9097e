"""All that the dashboard knows, in bounded memory.

However long the streams and however many the features, it keeps at most 2,000,000 points
(48 MB) in at most 20,000 lines, 32 MB of curves, 32 MB of whole changes and 500 short ones a
stream, and 64 streams. What is beyond is not shown, and the page says so.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from pipeline.monitor.dashboard.curves import CurveStack
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.performance import Performance
from pipeline.monitor.dashboard.stories import MAX_CHANGES, Stories, brief
from pipeline.monitor.history import Seen, Throughput
from schemas import Change, DeadLetter, Explanation, Prediction, Record
from schemas.explanation import Method
from schemas.numbers import is_moderate

MAX_LINES = 20_000
"""Courses of all streams, features, methods and smoothing rates."""

MAX_POINTS = 2_000_000
"""Points of all lines together."""

MAX_LINE_POINTS = 2_000
"""Points of one line: three times what a screen shows, for looking closer."""

MAX_CURVE_BYTES = 32 * 1024 * 1024

MAX_STREAMS = 64

MAX_LETTERS_SEEN = 20_000
"""Identities of dead letters remembered for each partition."""

LAST = 10
"""Dead letters and notices that are shown, the newest."""


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
    """

    lines: dict[tuple[Method, float], dict[str, Line]] = field(default_factory=dict)
    curves: dict[tuple[str, float], CurveStack] = field(default_factory=dict)
    performance: Performance = field(default_factory=Performance)
    changes: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    change_count: int = 0
    records: int = 0
    newest_seq: int = -1
    throughput: Throughput = field(default_factory=Throughput)
    predicted: dict[int, int] = field(default_factory=dict)
    changed: dict[tuple[str, str | None, str | None], int] = field(default_factory=dict)


class State:
    """Takes what the pipeline publishes, each result once; one thread adds while others read.

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
    notices
        The last gaps and cold starts, of whatever stream.
    letters
        The last dead letters: where they came from, and why.
    letter_count
        How many there were.
    dropped
        How many records belonged to a stream or an explanation for which there is no room.
    operations
        What is known of the pipeline itself; see :mod:`pipeline.monitor.dashboard.feed`.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.streams: dict[str, StreamState] = {}
        self.stories = Stories()
        self.notices: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.letters: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.letter_count = 0
        self.dropped = 0
        self.operations = Operations()
        self._letters_seen: dict[tuple[str, int], Seen] = {}
        self._line_count = 0
        self._stack_count = 0

    def add(self, record: Record, partition: int, now: float | None = None) -> None:
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
        """
        self.version += 1
        match record:
            case Prediction():
                self._add_prediction(record, partition, now)
            case Explanation():
                self._add_explanation(record)
            case Change():
                self._add_change(record)
            case DeadLetter():
                self._add_letter(record)

    def _stream(self, name: str) -> StreamState | None:
        if name not in self.streams:
            if len(self.streams) >= MAX_STREAMS:
                self.dropped += 1
                return None
            self.streams[name] = StreamState()
        return self.streams[name]

    def _add_prediction(self, record: Prediction, partition: int, now: float | None) -> None:
        stream = self._stream(record.stream)
        if stream is None or record.seq <= stream.predicted.get(partition, -1):
            return
        stream.predicted[partition] = record.seq
        stream.records += 1
        stream.newest_seq = max(stream.newest_seq, record.seq)
        if now is not None:
            stream.throughput.add(now)
        if record.loss is not None and is_moderate(record.loss):
            hit = None if record.classes is None else record.prediction == record.y
            stream.performance.add(record.seq, record.loss, hit)

    def _add_explanation(self, record: Explanation) -> None:
        # without an increment it says again what is known, not that something was seen
        if not (record.seqs and is_moderate(record.value) and is_moderate(record.std_error)):
            return
        stream = self._stream(record.stream)
        line = None if stream is None else self._line(stream, record)
        if stream is None or line is None or record.seq <= line.seq:
            return
        most = max(min(MAX_LINE_POINTS, MAX_POINTS // self._line_count), 2)
        line.add(record.seq, record.value, record.std_error, version=self.version, most=most)
        stream.newest_seq = max(stream.newest_seq, record.seq)
        if record.grid is not None:
            self._add_curve(stream, record)

    def _line(self, stream: StreamState, record: Explanation) -> Line | None:
        lines = stream.lines.setdefault((record.method, record.alpha), {})
        if record.feature not in lines:
            if self._line_count >= MAX_LINES:
                self.dropped += 1
                return None
            self._line_count += 1
            lines[record.feature] = Line()
        return lines[record.feature]

    def _add_curve(self, stream: StreamState, record: Explanation) -> None:
        key = (record.feature, record.alpha)
        if key not in stream.curves:
            stream.curves[key] = CurveStack()
            self._stack_count += 1
        stream.curves[key].add(record, room=MAX_CURVE_BYTES // self._stack_count)

    def _add_change(self, change: Change) -> None:
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
        stream.changed[key] = change.seq
        self.stories.add(change)
        stream.changes.append((self.version, short))
        stream.changes.sort(key=lambda each: each[1]["seq"])
        del stream.changes[:-MAX_CHANGES]
        stream.change_count += 1

    def _add_letter(self, letter: DeadLetter) -> None:
        seen = self._letters_seen.setdefault(
            (letter.topic, letter.partition), Seen(MAX_LETTERS_SEEN)
        )
        if not seen.add((letter.offset, letter.key or "")):
            return
        self.letter_count += 1
        where = {"topic": letter.topic, "partition": letter.partition, "offset": letter.offset}
        self.letters.append({**where, "reason": letter.reason})


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
        Why the broker does not tell the roles' lag; None if it does.
    """

    read: int = 0
    to_read: int = 0
    is_loaded: bool = False
    roles: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None
