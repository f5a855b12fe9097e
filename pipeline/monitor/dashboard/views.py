"""JSON for the page, made from the store while holding its lock."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from fluxplain.config import Config
from fluxplain.results.change_groups import Incident, ranked
from fluxplain.results.feature_names import FeatureNames, in_order
from fluxplain.results.headline import Headline, Limits, headline
from fluxplain.results.series import Points, Series
from fluxplain.results.severity import severity
from fluxplain.results.store import Store
from fluxplain.results.stream_results import Alphas, Row, StreamResults, overview
from fluxplain.schemas import Change, Note, stream_name
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.times import moment

Noting = Literal["here", "commands"]
"""Whether the page can write notes, or shows the commands that do."""

SHOWN_POINTS = 600
"""Most points of a line on a screen."""

FRESH_POINTS = 30
"""Most points of a line in one update."""

TREND_POINTS = 300
"""Most points of loss and accuracy, and of the observations' times."""

ROW_POINTS = 40
"""Most points of a feature in a stream's row."""

HEAT_ROWS, HEAT_COLUMNS = 200, 80
"""Most features, and points of each, that are shown as colours."""

LISTED_CHANGES = 500
"""Number of latest changes that the page lists."""

_LISTED_REASONS = ("seq", "id", "prediction", "label", "output", "base")
"""Fields of reasons in the page's list."""

OVERVIEW_S = 1.0
"""Seconds for which what is told of all streams is cached."""

_BRIEF = (
    *("id", "kind", "seq", "feature", "method", "before", "after", "direction", "after_seq"),
    *("incident", "detail", "signal", "category", "status", "effect_size", "learning"),
)
"""Fields of a change in the page's list."""

_RESULTS = ("records", "newest_seq", "labels", "letters", "changed_at")
"""Results of a stream in its row."""


class Choice(NamedTuple):
    """Stream, method and smoothing rate that a page shows; None leaves the choice open."""

    stream: str | None = None
    method: Method | None = None
    alpha: float | None = None


class View:
    """Answers the page's requests."""

    def __init__(self, config: Config, store: Store, noting: Noting | None = None) -> None:
        self._config = config
        self._store = store
        self._own = config.own_streams
        self._alphas = Alphas.configured(config)
        self._limits = Limits.configured(config)
        self._names = FeatureNames.configured(config)
        self._status = -OVERVIEW_S, b""
        self._rows: dict[Method | None, tuple[float, bytes]] = {}
        explained = dict.fromkeys([*config.features, *config.explained])
        self._about = {
            "prefix": config.topics.prefix,
            "topic": config.topic("features"),
            "streams": {
                stream_name(config.topic(config.source), partition): name
                for partition, name in config.dashboard.streams.items()
            },
            "methods": {
                name: {"title": m.title, "unit": m.unit, "meaning": m.meaning}
                for name, m in METHODS.items()
            },
            "names": {name: self._names.of(name) for name in explained},
            "units": config.dashboard.units,
            "places": in_order(map(self._names.of, explained)),
            "regression": config.label.type in {"number", "none"},
            "noting": noting,
            "categorical": [f for f, kind in config.features.items() if kind == "categorical"],
        }

    def overview(self, requested: Choice) -> bytes:
        """Return the page's initial data: choices, newest values, changes, numbers."""
        with self._store.lock:
            state = self._state(requested, since=-1, most=1)
            return _json({"about": {**self._about, "loss": self._loss(state["stream"])}, **state})

    def news(self, requested: Choice, since: int) -> tuple[int, bytes]:
        """Return the store's version, and the updates since an earlier version."""
        with self._store.lock:
            self._store.end_mutes()
            return self._store.version, _json(self._state(requested, since, FRESH_POINTS))

    def series(
        self, requested: Choice, features: Sequence[str], first: int | None, last: int | None
    ) -> bytes:
        """Return features over time, in full or within a range of seqs."""
        with self._store.lock:
            chosen, lines = self._chosen(requested)
            found = {name: lines[name] for name in features if name in lines}
            points = {
                name: line.between(
                    first or 0, line.seq if last is None else last, most=SHOWN_POINTS
                )
                for name, line in found.items()
            }
            drawn = {name: _drawn(each) for name, each in points.items()}
            return _json({**chosen._asdict(), "version": self._store.version, "lines": drawn})

    def heat(self, requested: Choice) -> bytes:
        """Return all features at the same seqs, the currently most important first."""
        with self._store.lock:
            chosen, lines = self._chosen(requested)
            ranked = sorted(lines.items(), key=lambda item: (-item[1].newest.value, item[0]))
            shown = dict(ranked[:HEAT_ROWS])
            first = min((line.first_seq for line in shown.values()), default=0)
            last = max((line.seq for line in shown.values()), default=0)
            seqs = np.unique(np.linspace(first, last, HEAT_COLUMNS).astype(np.int64))
            values = [_values_at(line.points, seqs) for line in shown.values()]
        found = {"features": list(shown), "count": len(lines), "seq": seqs, "values": values}
        return _json({**chosen._asdict(), **found})

    def curves(self, stream: str, feature: str, alpha: float | None) -> bytes | None:
        """Return the curves of a feature; None if it has none."""
        with self._store.lock:
            known = self._stream(stream).curves
            present = [a for f, a in known if f == feature]
            alphas = self._alphas.known(stream, present) if alpha is None else [alpha]
            history = next((known[feature, a] for a in alphas if (feature, a) in known), None)
            if history is None:
                return None
            return _json(
                {
                    "feature": feature,
                    "current": orjson.Fragment(history.current or b"null"),
                    "earlier": [orjson.Fragment(curve) for curve in history.earlier],
                    "ice": orjson.Fragment(history.ice),
                }
            )

    def streams(self, method: Method | None) -> bytes:
        """Return a row for each stream, cached for all pages."""
        now = time.monotonic()
        made_at, rows = self._rows.get(method, (-OVERVIEW_S, b""))
        if now - made_at >= OVERVIEW_S:
            with self._store.lock:
                streams, notes = self._store.streams, self._store.notes
                found = overview(streams, self._alphas, method, now, notes)
                made = [_row(each) for each in found]
                rows = _json({"rows": made, "has_more": self._store.has_more_streams})
            self._rows[method] = now, rows
        return rows

    def reasons(self, stream: str) -> bytes:
        """Return a line for each observation with reasons, and whether the settings enable them."""
        with self._store.lock:
            found = self._stream(stream).reasons.latest_first()
        enabled = self._own.get(stream, self._config).reasons.enabled
        rows = [_reasons_line([orjson.loads(text) for text in texts]) for texts in found]
        return _json({"enabled": enabled, "rows": rows})

    def reasons_of(self, stream: str, seq: int) -> bytes | None:
        """Return the reasons for one output, one record for each label; None if none are kept."""
        with self._store.lock:
            found = self._stream(stream).reasons.of(seq)
        return _json([orjson.Fragment(text) for text in found]) if found else None

    def story(self, change_id: str) -> bytes | None:
        """Return a whole change, with its sentence as it is shown; None if it is not kept."""
        with self._store.lock:
            found = self._store.stories.get(change_id)
        if found is None:
            return None
        change = Change.decode(found)
        return _json(replace(change, detail=self._names.change(change).detail))

    def status(self) -> bytes:
        """Return the headline of each stream, in words and as numbers, cached for all readers."""
        now = time.monotonic()
        made_at, known = self._status
        if now - made_at < OVERVIEW_S:
            return known
        with self._store.lock:
            found = {
                name: {"text": state.text, **asdict(state), "muted": self._muted(name)}
                for name, each in self._store.streams.items()
                for state in [self._headline(name, each)]
            }
        known = _json({"streams": found, "has_more": self._store.has_more_streams})
        self._status = now, known
        return known

    def _headline(self, name: str | None, stream: StreamResults) -> Headline:
        alphas, notes = self._alphas.of(name), self._store.notes
        return headline(stream, self._store.status, alphas, self._limits, notes, self._names)

    def _muted(self, stream: str | None) -> dict[str, Any]:
        """Return the muted features of a stream, with who muted them, and why."""
        notes = [] if stream is None else self._store.notes.all_muted(stream)
        return {str(note.feature): {**_noted(note), "stream": note.stream} for note in notes}

    def _incidents(
        self, changes: Sequence[tuple[int, Change]], since: int
    ) -> list[Incident] | None:
        """Return all incidents of a stream; None if they are as they were at a version."""
        if max([self._store.noted, *(version for version, _ in changes)]) <= since:
            return None
        listed = (change for _, change in changes)
        return ranked(listed, self._store.notes, self._limits.together, self._names)

    def _listed(self, change: Change) -> dict[str, Any]:
        """Return a change as the page lists it, with who acknowledged it."""
        note = self._store.notes.acknowledged(change.id)
        known = None if note is None else _noted(note)
        return {**_brief(change), "severity": severity(change), "note": known}

    def _chosen(self, requested: Choice) -> tuple[Choice, dict[str, Series]]:
        """Complete a page's choice, and return it with the lines to show."""
        streams = self._store.streams
        if not streams:
            return requested, {}
        # a stream with only dead letters is the last resort
        known = (name for name, stream in streams.items() if stream.newest_seq >= 0)
        name = requested.stream
        if name not in streams:
            name = next(known, next(iter(streams)))
        stream = streams[name]
        alphas = self._alphas.of(name)
        method, alpha = stream.choose(alphas, requested.method, requested.alpha)
        chosen = Choice(name, method, alpha)
        if method is None or alpha is None:
            return chosen, {}
        return chosen, stream.series[method, alpha]

    def _stream(self, name: str | None) -> StreamResults:
        return self._store.streams.get(name or "", StreamResults())

    def _loss(self, stream: str | None) -> str:
        loss = self._own.get(stream or "", self._config).explain.loss
        return loss.rpartition(":")[2].replace("_", " ")

    def _state(self, requested: Choice, since: int, most: int) -> dict[str, Any]:
        """Return the current numbers, and the updates since a version."""
        store, status = self._store, self._store.status
        chosen, lines = self._chosen(requested)
        stream = self._stream(chosen.stream)
        loading = {"read": status.read, "to_read": status.to_read}
        changes = stream.changes[-LISTED_CHANGES:]
        return {
            "version": store.version,
            "streams": list(store.streams),
            **chosen._asdict(),
            "features": {
                name: {"peak": line.peak, **_drawn(line.since(since, most=most))}
                for name, line in lines.items()
                if line.version > since
            },
            "changes": [self._listed(change) for version, change in changes if version > since],
            "incidents": self._incidents(changes, since),
            "muted": self._muted(chosen.stream),
            "methods": stream.methods,
            "alphas": self._alphas.known(chosen.stream, stream.alphas()),
            "curves": list(dict.fromkeys(feature for feature, _ in stream.curves)),
            "records": stream.records,
            "labels": stream.labels,
            "newest_seq": stream.newest_seq,
            "times": _times(stream.times.between(0, stream.newest_seq, most=TREND_POINTS)),
            "rate": stream.throughput.rate(time.monotonic()),
            "performance": stream.performance.trend(TREND_POINTS),
            "change_count": stream.change_count,
            "reasons": stream.reasons.version,
            "letter_count": store.letter_count,
            "letters": list(store.letters),
            "notices": [{**_brief(each), "stream": each.stream} for each in store.notices],
            "left_out": store.left_out,
            "loading": None if status.is_loaded else loading,
            "roles": [
                {"part": role.part, "topic": role.topic, "lag": role.lag} for role in status.roles
            ],
            "trouble": status.trouble,
            "headline": self._headline(chosen.stream, stream),
        }


def _row(row: Row) -> dict[str, Any]:
    top: list[dict[str, Any]] = []
    for feature, series in row.top:
        _, value, std_error = series.newest
        trend = series.between(0, series.seq, most=ROW_POINTS)
        points = {"seq": trend.seq, "trend": trend.value.astype(np.float32)}
        top.append({"feature": feature, "value": value, "std_error": std_error, **points})
    return {
        **{
            name: value for name, value in row._asdict().items() if name not in {"results", "notes"}
        },
        **{name: getattr(row.results, name) for name in _RESULTS},
        "top": top,
        "change": None if row.change is None else _brief(row.change),
        "is_known": row.note is not None,
    }


def _reasons_line(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the line of an observation: about the predicted class, with its largest reason."""
    of_predicted = (each for each in records if each["label"] == each["prediction"])
    shown = next(of_predicted, records[0])
    largest = [shown[name][:1] for name in ("names", "values", "contributions", "std_errors")]
    columns = ("feature", "value", "contribution", "std_error")
    found = {name: next(iter(each), None) for name, each in zip(columns, largest, strict=True)}
    found["is_missing"] = found["feature"] in (shown["missing"] or ())
    return {**{name: shown[name] for name in _LISTED_REASONS}, **found}


def _brief(change: Change) -> dict[str, Any]:
    return {name: getattr(change, name) for name in _BRIEF}


def _noted(note: Note) -> dict[str, Any]:
    """Return who noted something, and what; times in milliseconds since 1970."""
    return {"by": note.by, "text": note.text, "at": _ms(note.at), "until": _ms(note.until)}


def _ms(at: str | None) -> int | None:
    seconds = moment(at)
    return None if seconds is None else round(1000.0 * seconds)


def _drawn(points: Points) -> dict[str, Any]:
    """Return points in single precision: seven digits are more than a screen shows."""
    value, std_error = (each.astype(np.float32) for each in (points.value, points.std_error))
    return {"seq": points.seq, "value": value, "std_error": std_error}


def _values_at(points: Points, seqs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the newest value at each seq; NaN before the first."""
    places = np.searchsorted(points.seq, seqs, side="right") - 1
    return np.where(places < 0, np.nan, points.value[places]).astype(np.float32)


def _times(points: Points) -> dict[str, Any]:
    return {"seq": points.seq, "at": points.value.round(3)}


def _json(thing: object) -> bytes:
    return orjson.dumps(thing, option=orjson.OPT_SERIALIZE_NUMPY)
