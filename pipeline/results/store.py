"""Published records in bounded memory.

The store keeps at most 64 streams, 1,500,000 points (48 MB) in at most 20,000 series, 32 MB of
curves, 32 MB of whole changes, 32,000 short ones, 16 MB of reasons, 4,000 notes (40 MB), and
100,000 identities of dead letters (20 MB): however long the streams, however many the features, and
whatever others have written into the topics. It counts the records that it leaves out.
"""

import threading
from collections import Counter, OrderedDict, deque
from dataclasses import replace
from typing import Any

from fluxplain.results.duplicates import Duplicates
from fluxplain.results.notes import Notes
from fluxplain.results.pdp_history import PdpHistory, compact, curve_of, drawable_ice
from fluxplain.results.pipeline_status import PipelineStatus
from fluxplain.results.recent_reasons import RecentReasons
from fluxplain.results.series import MAX_POINTS, Budget, Series
from fluxplain.results.stream_results import StreamResults
from fluxplain.schemas import Change, DeadLetter, Explanation, Note, Prediction, Reasons, Record
from fluxplain.schemas.change import Evidence
from fluxplain.schemas.change_wording import outliers
from fluxplain.schemas.numbers import are_moderate, is_moderate
from fluxplain.schemas.times import moment

MAX_SERIES = 20_000
"""Series of all streams, features, methods and smoothing rates; twice as many identities."""

MAX_ALL_POINTS = 1_500_000
"""Points of all series."""

MAX_CURVE_BYTES = 32 * 1024 * 1024
"""Bytes of all curves."""

MAX_STORY_BYTES = 32 * 1024 * 1024
"""Bytes of whole changes; one with two curves takes about 2 KB, and at most 1 MB."""

MAX_CHANGES = 2_000
"""Latest changes of a stream, without curves; fewer if many streams share the budget."""

MAX_ALL_CHANGES = 32_000
"""Changes of all streams, without curves."""

MAX_REASON_BYTES = 16 * 1024 * 1024
"""Bytes of the reasons of all streams; a record with ten features takes about 1 KB."""

MAX_STREAM_REASON_BYTES = 4 * 1024 * 1024
"""Bytes of one stream's reasons; fewer if many streams share the budget."""

MAX_STREAMS = 64

MAX_NAME = 500
"""Longest name, in characters; a pair of features with the longest names has 499."""

MAX_SEQ = 2**53
"""Largest seq; above it a browser cannot distinguish neighbouring integers."""

MAX_TEXT = 1_000
"""Characters of a text to show, as many as a dead letter's reason may have."""

LAST = 10
"""Number of latest notices and dead letters to show."""

PATIENCE = 1_000
"""Results of other streams after which a silent stream is no longer the current one."""

# why records are left out, as the page words it
NO_ROOM = "left out: there is no room for so many streams, features or smoothing rates"
UNFIT = "left out: their names are too long, or their numbers too large"
UNREADABLE = "left out: they are no valid records"
NO_CURVE = "shown without some of their curves, which are too large or invalid"


class Store:
    """Accumulates published records, each result once; one thread adds, others read.

    All threads hold ``lock`` while they do. ``version`` grows with each record, so that readers can
    get the news since a version; ``noted`` is that of the newest note or end of a mute. ``source``
    is the topic whose partitions are the streams: it makes streams known that have only dead
    letters.
    """

    def __init__(self, source: str | None = None) -> None:
        self._source = source
        self.lock = threading.Lock()
        self.version = 0
        self.streams: dict[str, StreamResults] = {}
        self.stories = Stories()
        self.notes = Notes()
        self.letter_count = 0
        self.letters: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.notices: deque[Change] = deque(maxlen=LAST)
        self.has_more_streams = False
        self.left_out: Counter[str] = Counter()
        self.status = PipelineStatus()
        self.noted = 0
        self._muted = 0
        self.current: str | None = None
        self._duplicates = Duplicates(2 * MAX_SERIES)
        self._points = Budget[Series](MAX_ALL_POINTS, MAX_POINTS)
        self._curve_bytes = Budget[PdpHistory](MAX_CURVE_BYTES, MAX_CURVE_BYTES)
        self._changes = Budget[StreamResults](MAX_ALL_CHANGES, MAX_CHANGES)
        self._reason_bytes = Budget[RecentReasons](MAX_REASON_BYTES, MAX_STREAM_REASON_BYTES)

    def add(
        self, record: Record, partition: int = 0, now: float | None = None, *, at: int = 0
    ) -> bool:
        """Add a record; return whether it is new and kept.

        In each partition, a stream's records must be in order, except for duplicates after a crash.
        ``now``, in seconds of a monotonic clock, is for the throughput; ``at`` is the message's
        timestamp, in milliseconds since 1970.
        """
        self.version += 1
        if isinstance(record, Note):
            return self._add_note(record)
        if isinstance(record, DeadLetter):
            self.status.freshness.note(at, now)
            return self._add_letter(record)
        if not isinstance(record, Prediction | Explanation | Change | Reasons):
            return False
        if not _is_fit(record):
            self.left_out[UNFIT] += 1
            return False
        if isinstance(record, Reasons):
            return self._add_reasons(record)
        return self._add_result(record, partition, now, at)

    def changes_of(self, wanted: str) -> list[Change]:
        """Return the kept changes with an id, or of an incident."""
        every = (change for stream in self.streams.values() for _, change in stream.changes)
        return [each for each in every if wanted in {each.id, each.incident}]

    def _add_result(
        self,
        record: Prediction | Explanation | Change,
        partition: int,
        now: float | None,
        at: int,
    ) -> bool:
        if isinstance(record, Explanation) and not record.seqs:
            return False  # it repeats the previous one
        is_notice = isinstance(record, Change) and record.is_notice
        # a notice's stream may be a partition of another topic
        stream = self.streams.get(record.stream) if is_notice else self._stream(record.stream)
        if (stream is None and not is_notice) or not self._is_new(record, partition):
            return False
        if isinstance(record, Change) and is_notice:
            self.notices.append(_without_curves(record))
        return stream is not None and self._add_to(stream, record, now, at)

    def _is_new(self, record: Record, partition: int) -> bool:
        is_new = self._duplicates.is_new(record, partition)
        if is_new is None:
            self.left_out[NO_ROOM] += 1
        return bool(is_new)

    def _add_to(
        self,
        stream: StreamResults,
        record: Prediction | Explanation | Change,
        now: float | None,
        at: int,
    ) -> bool:
        stream.last_result = self.version
        stream.freshness.note(at, now)
        self.status.freshness.note(at, now)
        # switching streams with every record would make the display unreadable
        current = None if self.current is None else self.streams[self.current]
        if current is None or self.version - current.last_result > PATIENCE:
            self.current = record.stream
        if isinstance(record, Explanation):
            return self._add_explanation(stream, record)
        if isinstance(record, Prediction):
            _add_prediction(stream, record, now)
            if now is not None:
                self.status.throughput.add(now)
        else:
            self._add_change(stream, record, at)
        return True

    def _stream(self, name: str) -> StreamResults | None:
        if name in self.streams:
            return self.streams[name]
        if len(self.streams) >= MAX_STREAMS:
            self.left_out[NO_ROOM] += 1
            self.has_more_streams = True
            return None
        stream = self.streams[name] = self._changes.admit(StreamResults())
        self._reason_bytes.admit(stream.reasons)
        return stream

    def end_mutes(self) -> None:
        """Count it as news if a mute has ended since the last call."""
        before, self._muted = self._muted, len(self.notes.all_muted())
        if self._muted < before:
            self.version += 1
            self.noted = self.version

    def _add_reasons(self, record: Reasons) -> bool:
        stream = self._stream(record.stream)
        if stream is None:
            return False
        stream.last_result = self.version
        most = self._reason_bytes.each
        return stream.reasons.add(record, version=self.version, most=most)

    def _add_note(self, note: Note) -> bool:
        self.notes.add(note)
        self.noted = self.version
        stream = self.streams.get(note.stream or "")
        if stream is not None and note.change is not None:
            stream.renew(note.change, self.version)
        return True

    def _add_letter(self, letter: DeadLetter) -> bool:
        if not self._duplicates.is_new(letter, 0):
            return False
        self.letter_count += 1
        self.letters.append(
            {
                "topic": shortened(letter.topic),
                "partition": letter.partition,
                "offset": letter.offset,
                "reason": shortened(letter.reason),
            }
        )
        # other letters are about messages between roles, or forged
        if letter.stream == f"{self._source}-{letter.partition}":
            stream = self._stream(letter.stream)
            if stream is not None:
                stream.letters += 1
        return True

    def _add_explanation(self, stream: StreamResults, record: Explanation) -> bool:
        series = self._series(stream, record)
        if series is None or record.seq <= series.seq:
            return False
        most = self._points.each
        series.add(record.seq, record.value, record.std_error, version=self.version, most=most)
        stream.newest_seq = max(stream.newest_seq, record.seq)
        if record.grid is not None:
            self._add_curve(stream, record)
        return True

    def _series(self, stream: StreamResults, record: Explanation) -> Series | None:
        key = (record.method, record.alpha)
        series = stream.series.get(key, {}).get(record.feature)
        if series is not None:
            return series
        if len(self._points.members) >= MAX_SERIES:
            self.left_out[NO_ROOM] += 1
            return None
        series = stream.series.setdefault(key, {})[record.feature] = self._points.admit(Series())
        return series

    def _add_curve(self, stream: StreamResults, record: Explanation) -> None:
        curve, ice = curve_of(record), drawable_ice(record)
        is_whole = len(ice) == len(record.ice or ())
        if curve is not None:
            key = (record.feature, record.alpha)
            if key not in stream.curves:
                stream.curves[key] = self._curve_bytes.admit(PdpHistory())
            history, most = stream.curves[key], self._curve_bytes.each
            is_whole = history.add(curve, ice, most=most) and is_whole
        if curve is None or not is_whole:
            self.left_out[NO_CURVE] += 1

    def _add_change(self, stream: StreamResults, change: Change, at: int) -> None:
        self.stories.add(change)
        if change.is_follow_up:
            stream.changes = [each for each in stream.changes if each[1].id != change.id]
        else:
            stream.change_count += 1
            stream.changed_at = max(stream.changed_at, at)
        stream.changes.append((self.version, _without_curves(change)))
        stream.changes.sort(key=lambda each: each[1].seq)
        stream.trim(self._changes.each)


class Stories:
    """Whole changes with curves, as JSON, by id; the oldest are evicted first."""

    def __init__(self) -> None:
        self._size = 0
        self._stories: OrderedDict[str, bytes] = OrderedDict()

    def add(self, change: Change) -> None:
        """Keep a change; evict old ones to make room."""
        story = compact(change.encode())
        self._size += len(story) - len(self._stories.pop(change.id, b""))
        self._stories[change.id] = story
        while self._size > MAX_STORY_BYTES:
            _, oldest = self._stories.popitem(last=False)
            self._size -= len(oldest)

    def get(self, change_id: str) -> bytes | None:
        """Return a change as JSON; None if it is unknown or evicted."""
        return self._stories.get(change_id)


def shortened(text: str) -> str:
    """Cut a text to the length that is shown."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _add_prediction(stream: StreamResults, record: Prediction, now: float | None) -> None:
    stream.records += record.observation is None
    stream.newest_seq = max(stream.newest_seq, record.seq)
    if record.seq > stream.newest_prediction:
        stream.newest_prediction, stream.labels = record.seq, record.labels
    at = moment(record.ts)
    if at is not None and record.seq > stream.times.seq:
        stream.times.add(record.seq, at, None)
    if now is not None:
        stream.throughput.add(now)
    if record.loss is not None and is_moderate(record.loss):
        stream.performance.add(record.seq, record.loss, record.is_right)


def _without_curves(change: Change) -> Change:
    """Return a change without its curves and other fields that may be large."""
    outlying = outliers(change.evidence)
    return replace(
        change,
        curve_before=None,
        curve_after=None,
        region=None,
        # whether there is an outlier is part of how severe a change is
        evidence=[Evidence(each.seq, feature=each.feature) for each in outlying[:1]] or None,
        cause=None,
        ts=None,
        model_version=None,
        detail=shortened(change.detail),
    )


def _is_fit(record: Prediction | Explanation | Change | Reasons) -> bool:
    """Return whether a record, which is untrusted, can be kept and plotted."""
    names: tuple[str | None, ...] = (record.stream,)
    numbers: tuple[float, ...] = ()
    if isinstance(record, Explanation):
        names = record.stream, record.feature
        numbers = record.value, record.std_error or 0.0
    elif isinstance(record, Reasons):
        numbers = record.output, record.base, record.rest
        numbers += (*record.contributions, *record.std_errors)
    elif isinstance(record, Change):
        names = (record.stream, record.feature, record.id, record.incident)
    return (
        0 <= record.seq <= MAX_SEQ
        and all(name is None or len(name) <= MAX_NAME for name in names)
        and are_moderate(numbers)
    )
