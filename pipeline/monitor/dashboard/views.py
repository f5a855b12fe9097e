"""What the page shows, as JSON; the store's lock is held meanwhile."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from fluxplain.config import Config
from fluxplain.results.overview import Row, choose, overview
from fluxplain.results.selection import Alphas
from fluxplain.results.series import Points, Series
from fluxplain.results.store import Store
from fluxplain.results.stream_results import StreamResults
from fluxplain.schemas import Change
from fluxplain.schemas.methods import METHODS, Method

SHOWN_POINTS = 600
"""Points of a line that a screen shows."""

FRESH_POINTS = 30
"""Points of a line in one update."""

TREND_POINTS = 300
"""Points of loss and accuracy."""

ROW_POINTS = 40
"""Points of a feature in the row of a stream."""

LISTED_CHANGES = 500
"""Changes that the page lists, the newest."""

OVERVIEW_S = 1.0
"""Age until which the rows of all streams are sent again."""

_BRIEF = (
    *("id", "kind", "seq", "feature", "method", "before", "after", "direction", "after_seq"),
    *("incident", "detail"),
)
"""Fields of a change in the list."""


class Choice(NamedTuple):
    """What a page shows; None for whatever there is."""

    stream: str | None = None
    method: Method | None = None
    alpha: float | None = None


class View:
    """Answers the page's requests."""

    def __init__(self, config: Config, store: Store) -> None:
        self._config = config
        self._store = store
        self._own = config.own_streams
        self._alphas = Alphas.configured(config)
        self._rows: dict[Method | None, tuple[float, bytes]] = {}
        self._about = {
            "prefix": config.topics.prefix,
            "methods": {name: {"title": m.title, "unit": m.unit} for name, m in METHODS.items()},
            "regression": config.label.type in {"number", "none"},
            "categorical": [f for f, kind in config.features.items() if kind == "categorical"],
        }

    def overview(self, asked: Choice) -> bytes:
        """Return what the page starts with: choices, newest values, changes, numbers."""
        with self._store.lock:
            state = self._state(asked, since=-1, most=1)
            return _json({"about": {**self._about, "loss": self._loss(state["stream"])}, **state})

    def news(self, asked: Choice, since: int) -> tuple[int, bytes]:
        """Return what came after a version, and the version up to which that is."""
        with self._store.lock:
            return self._store.version, _json(self._state(asked, since, FRESH_POINTS))

    def series(
        self, asked: Choice, features: Sequence[str], first: int | None, last: int | None
    ) -> bytes:
        """Return some features over time, whole or within a range of seqs."""
        with self._store.lock:
            chosen, lines = self._chosen(asked)
            found = {name: lines[name] for name in features if name in lines}
            points = {
                name: line.between(
                    first or 0, line.seq if last is None else last, most=SHOWN_POINTS
                )
                for name, line in found.items()
            }
            drawn = {name: _drawn(each) for name, each in points.items()}
            return _json({**chosen._asdict(), "version": self._store.version, "lines": drawn})

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
        """Return a row for each stream; all pages share it for a while."""
        now = time.monotonic()
        made_at, rows = self._rows.get(method, (-OVERVIEW_S, b""))
        if now - made_at >= OVERVIEW_S:
            with self._store.lock:
                made = [_row(each) for each in overview(self._store, self._alphas, method, now)]
                rows = _json({"rows": made, "has_more": self._store.has_more_streams})
            self._rows[method] = now, rows
        return rows

    def _chosen(self, asked: Choice) -> tuple[Choice, dict[str, Series]]:
        """Return what is shown, also where the page left it open."""
        streams = self._store.streams
        # not one with nothing but dead letters, unless there is no other
        known = (name for name, stream in streams.items() if stream.newest_seq >= 0)
        name = asked.stream if asked.stream in streams else next(known, next(iter(streams), None))
        if name is None:
            return asked, {}
        stream = streams[name]
        method, alpha = choose(stream, self._alphas.of(name), asked.method, asked.alpha)
        chosen = Choice(name, method, alpha)
        if method is None or alpha is None:
            return chosen, {}
        return chosen, stream.series[method, alpha]

    def _stream(self, name: str | None) -> StreamResults:
        return self._store.streams.get(name or "", StreamResults())

    def _loss(self, stream: str | None) -> str:
        loss = self._own.get(stream or "", self._config).explain.loss
        return loss.rpartition(":")[2].replace("_", " ")

    def _state(self, asked: Choice, since: int, most: int) -> dict[str, Any]:
        """Return the numbers of now, and what came after a version."""
        store, status = self._store, self._store.status
        chosen, lines = self._chosen(asked)
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
            "changes": [_brief(change) for version, change in changes if version > since],
            "methods": stream.methods,
            "alphas": self._alphas.known(chosen.stream, stream.alphas()),
            "curves": list(dict.fromkeys(feature for feature, _ in stream.curves)),
            "records": stream.records,
            "labels": stream.labels,
            "newest_seq": stream.newest_seq,
            "rate": stream.throughput.rate(time.monotonic()),
            "performance": stream.performance.trend(TREND_POINTS),
            "change_count": stream.change_count,
            "letter_count": store.letter_count,
            "letters": list(store.letters),
            "notices": [{**_brief(each), "stream": each.stream} for each in store.notices],
            "left_out": store.left_out,
            "loading": None if status.is_loaded else loading,
            "roles": status.roles,
            "trouble": status.trouble,
        }


def _row(row: Row) -> dict[str, Any]:
    results = row.results
    top: list[dict[str, Any]] = []
    for feature, series in row.top:
        _, value, std_error = series.newest
        trend = series.between(0, series.seq, most=ROW_POINTS)
        points = {"seq": trend.seq, "trend": trend.value.astype(np.float32)}
        top.append({"feature": feature, "value": value, "std_error": std_error, **points})
    return {
        **{name: getattr(row, name) for name in _ROW},
        "records": results.records,
        "newest_seq": results.newest_seq,
        "labels": results.labels,
        "letters": results.letters,
        "changed_at": results.changed_at,
        "top": top,
        "change": None if row.change is None else _brief(row.change),
    }


_ROW = ("stream", "rate", "loss", "accuracy", "method", "alpha")


def _brief(change: Change) -> dict[str, Any]:
    return {name: getattr(change, name) for name in _BRIEF}


def _drawn(points: Points) -> dict[str, Any]:
    """Return points with seven digits: more than a screen shows."""
    value, std_error = (each.astype(np.float32) for each in (points.value, points.std_error))
    return {"seq": points.seq, "value": value, "std_error": std_error}


def _json(thing: object) -> bytes:
    return orjson.dumps(thing, option=orjson.OPT_SERIALIZE_NUMPY)
