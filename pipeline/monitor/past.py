"""What figures need of all that was published, in bounded memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipeline.monitor.history import History, Series, StreamHistory
from pipeline.monitor.rates import Rates
from pipeline.monitor.surroundings import Story
from schemas import Change, Explanation, Prediction, Record
from schemas.change import Curve
from schemas.explanation import METHODS, Method
from schemas.numbers import are_moderate

MAX_CURVES = 64
"""Curves kept of each feature, evenly spread over time: more than a figure shows."""

MAX_NAMES = 1_000
"""Names remembered to say what there is, if nothing fits."""


class NothingError(ValueError):
    """There is nothing to draw. The message says what there is."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are wanted.

    Attributes
    ----------
    stream
        None for one that has new data.
    methods
        Which explanations.
    features
        Which features, groups and pairs; None for all.
    first_seq, last_seq
        Which observations; None for those up to the newest.
    rates
        Which smoothing rates.
    """

    stream: str | None = None
    methods: tuple[Method, ...] = METHODS
    features: frozenset[str] | None = None
    first_seq: int = 0
    last_seq: int | None = None
    rates: Rates = field(default_factory=Rates)

    def holds(self, record: Prediction | Explanation | Change) -> bool:
        """Return whether a record is wanted; changes of the loss always are."""
        if self.stream not in {None, record.stream} or record.seq < self.first_seq:
            return False
        if self.last_seq is not None and record.seq > self.last_seq:
            return False
        if isinstance(record, Prediction) or record.feature is None:
            return True
        wanted = self.rates.of(record.stream)
        if isinstance(record, Explanation) and wanted not in {None, record.alpha}:
            return False
        if self.features is not None and record.feature not in self.features:
            return False
        return record.method in (*self.methods, None)


class Past:
    """Accumulates what is published, each result once, as far as it is selected.

    Parameters
    ----------
    selection
        What is wanted.
    stories
        Changes whose surroundings are collected.

    Attributes
    ----------
    history
        The courses of the explanations, and the changes.
    stories
        As given.
    """

    def __init__(self, selection: Selection, stories: Iterable[Story] = ()) -> None:
        self.selection = selection
        self.history = History(rates=selection.rates)
        self.stories = list(stories)
        self._curves: dict[tuple[str, str], Series[Curve]] = {}
        self._names: dict[str, set[str]] = {"stream": set(), "feature": set(), "alpha": set()}
        self._seqs: tuple[int, int] | None = None

    @classmethod
    def of(cls, records: Iterable[Record], selection: Selection | None = None) -> "Past":
        """Return the past of some records."""
        past = cls(selection or Selection())
        past.take(records)
        return past

    def take(self, records: Iterable[Record]) -> None:
        """Take records, in whatever order the topics bring them."""
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take a record; what came before is dropped, and so is what is not selected."""
        if not isinstance(record, Prediction | Explanation | Change):
            return
        if isinstance(record, Explanation):
            self._note(record)
            if not record.seqs:
                return  # nothing new was computed
        if not self.selection.holds(record) or not self.history.add(record):
            return
        if isinstance(record, Change):
            return
        for story in self.stories:
            story.add(record)
        curve = curve_of(record) if isinstance(record, Explanation) else None
        if curve is not None and isinstance(record, Explanation):
            key = (record.stream, record.feature)
            self._curves.setdefault(key, Series(MAX_CURVES)).add(curve)

    @property
    def stream(self) -> str:
        """The stream to show.

        Raises
        ------
        NothingError
            If nothing of what is selected was published.
        """
        stream = self.selection.stream or self.history.current
        if stream is None or stream not in self.history.streams:
            raise NothingError(self._nothing())
        return stream

    @property
    def state(self) -> StreamHistory:
        """What is known of the stream to show.

        Raises
        ------
        NothingError
            If there is no explanation of it.
        """
        state = self.history.streams[self.stream]
        if not state.latest:
            raise NothingError(self._nothing())
        return state

    @property
    def curves(self) -> dict[str, list[Curve]]:
        """Feature or pair → its curves over time in the stream to show; the last is the newest."""
        stream = self.stream
        return {f: series.points for (s, f), series in self._curves.items() if s == stream}

    def _note(self, e: Explanation) -> None:
        first, last = self._seqs or (e.seq, e.seq)
        self._seqs = min(first, e.seq), max(last, e.seq)
        for kind, name in (("stream", e.stream), ("feature", e.feature), ("alpha", f"{e.alpha:g}")):
            if len(self._names[kind]) < MAX_NAMES:
                self._names[kind].add(name)

    def _nothing(self) -> str:
        if self._seqs is None:
            return "there are no explanations to plot"
        there = "; ".join(
            f"{kind}: {', '.join(sorted(names)[:20])}" for kind, names in self._names.items()
        )
        there += "; seq: {} to {}".format(*self._seqs)
        return f"there are no such explanations to plot. What there is: {there}"


def curve_of(e: Explanation) -> Curve | None:
    """Return the curve or surface of an explanation; None if it has none that can be drawn."""
    if not e.grid or not e.effect:
        return None
    curve = Curve(e.seq, e.grid, e.effect, e.classes, e.second_grid)
    return curve if is_drawable(curve) else None


def is_drawable(curve: Curve) -> bool:
    """Return whether there is one moderate number for each class and point.

    Examples
    --------
    >>> is_drawable(Curve(7, [0.0, 1.0], [0.5, 0.7])), is_drawable(Curve(7, [0.0, 1.0], [0.5]))
    (True, False)
    """
    shape = [len(axis) for axis in (curve.classes, curve.grid, curve.second_grid) if axis]
    try:
        effect = np.array(curve.effect, np.float64)
    except ValueError:
        return False
    points = [v for v in (*curve.grid, *(curve.second_grid or ())) if not isinstance(v, str)]
    return effect.shape == tuple(shape) and are_moderate(effect.flat) and are_moderate(points)
