"""All streams side by side; the state's lock is held meanwhile."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.monitor.dashboard.choice import Chooser, Selection
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.state import State, StreamState
from schemas.explanation import Method
from schemas.prediction import LabelCounts

TOP = 3
"""Features of a stream that are shown, the most important ones."""

POINTS = 40
"""Points of the course of each of them."""


@dataclass(frozen=True, slots=True)
class Top:
    """One of the most important features.

    Attributes
    ----------
    feature, value, std_error
        Its importance now.
    seq, course
        Some seqs, and its importance then.
    """

    feature: str
    value: float
    std_error: float
    seq: npt.NDArray[np.int64]
    course: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """What is shown of one stream.

    Attributes
    ----------
    stream
        Its name.
    records, rate
        How many observations were predicted, and how many are a second.
    newest_seq
        The newest that was predicted or explained; -1 before the first.
    loss, accuracy
        Means of the last labelled records; None where there are none, or too few.
    labels
        Of labels that come later.
    letters
        Dead letters of its observations.
    method, alpha
        By which the features are ranked; None before the first explanation.
    top
        The most important features now.
    change
        The newest change, in short; None if there was none.
    changed_at
        When that came, in milliseconds since 1970; 0 if there was none.
    """

    stream: str
    records: int
    rate: float
    newest_seq: int
    loss: float | None
    accuracy: float | None
    labels: LabelCounts | None
    letters: int
    method: Method | None
    alpha: float | None
    top: list[Top]
    change: dict[str, Any] | None
    changed_at: int


def overview(state: State, chooser: Chooser, method: Method | None, now: float) -> list[Row]:
    """Return a row for each stream; the one with the newest change is the first.

    Parameters
    ----------
    state
        What is known.
    chooser
        What is shown of a stream.
    method
        By which features are ranked; None, or where there is none of it, the first there is.
    now
        Seconds of the clock that :meth:`State.add` was given.
    """
    return newest_first(
        [_row(name, each, chooser, method, now) for name, each in state.streams.items()]
    )


def newest_first(rows: Iterable[Row]) -> list[Row]:
    """Return the rows by when their stream last changed; those without a change by their names."""
    return sorted(rows, key=lambda row: (-row.changed_at, _natural(row.stream)))


def _row(
    name: str, stream: StreamState, chooser: Chooser, method: Method | None, now: float
) -> Row:
    chosen, lines = chooser.choose(Selection(name, method), stream)
    course = stream.performance.course(most=1)
    return Row(
        stream=name,
        records=stream.records,
        rate=stream.throughput.rate(now),
        newest_seq=stream.newest_seq,
        loss=course["loss"][-1] if course["loss"] else None,
        accuracy=course["accuracy"][-1] if course["accuracy"] else None,
        labels=stream.labels,
        letters=stream.letters,
        method=chosen.method,
        alpha=chosen.alpha,
        top=_top(lines),
        change=stream.changes[-1][1] if stream.changes else None,
        changed_at=stream.changed_at,
    )


def _top(lines: dict[str, Line]) -> list[Top]:
    newest = {name: line.between(line.seq, line.seq, most=1) for name, line in lines.items()}
    ranked = sorted(newest, key=lambda name: (-newest[name].value[-1], name))[:TOP]
    top = []
    for name in ranked:
        now, all_ = newest[name], lines[name].between(0, lines[name].seq, most=POINTS)
        value, std_error = float(now.value[-1]), float(now.std_error[-1])
        top.append(Top(name, value, std_error, all_.seq, all_.value))
    return top


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a name's key in an order in which 2 comes before 10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]
