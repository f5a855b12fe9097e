"""What the page is told, as JSON; the state's lock is held meanwhile."""

import time
from collections.abc import Sequence
from typing import Any

import orjson

from pipeline.config import Config
from pipeline.monitor.dashboard.choice import Chooser, Selection
from pipeline.monitor.dashboard.lines import Line, Points
from pipeline.monitor.dashboard.overview import overview
from pipeline.monitor.dashboard.state import State, StreamState
from schemas.explanation import METHODS, Method

SHOWN_POINTS = 600
"""Points of a line that a screen shows."""

FRESH_POINTS = 30
"""Points of a line in one update."""

COURSE_POINTS = 300
"""Points of loss and accuracy."""


OVERVIEW_S = 1.0
"""For how long the same is told of all streams."""


class View:
    """Answers the page's questions.

    Parameters
    ----------
    config
        The settings, for units and for which smoothing rate comes first.
    state
        What is known.
    """

    def __init__(self, config: Config, state: State) -> None:
        self._state = state
        self._chooser = Chooser(config)
        self._told: dict[Method | None, tuple[float, bytes]] = {}
        self._about = {
            "prefix": config.topics.prefix,
            "regression": config.label.type in {"number", "none"},
            "categorical": [f for f, kind in config.features.items() if kind == "categorical"],
        }

    def overview(self, asked: Selection) -> bytes:
        """Return what the page needs to begin: choices, newest values, changes, numbers."""
        with self._state.lock:
            chosen, lines = self._chosen(asked)
            stream = self._state.streams.get(chosen.stream or "", StreamState())
            return _json(
                {
                    "about": {**self._about, "loss": self._loss(chosen.stream)},
                    "version": self._state.version,
                    "streams": list(self._state.streams),
                    **chosen._asdict(),
                    "features": {
                        name: _latest(line, line.between(line.seq, line.seq, most=1))
                        for name, line in lines.items()
                    },
                    "changes": [change for _, change in stream.changes],
                    **self._numbers(chosen.stream, stream),
                }
            )

    def series(
        self, asked: Selection, features: Sequence[str], first: int | None, last: int | None
    ) -> bytes:
        """Return the courses of some features, whole or within a range of seqs."""
        with self._state.lock:
            chosen, lines = self._chosen(asked)
            return _json(
                {
                    **chosen._asdict(),
                    "version": self._state.version,
                    "lines": {
                        name: lines[name]
                        .between(
                            0 if first is None else first,
                            lines[name].seq if last is None else last,
                            most=SHOWN_POINTS,
                        )
                        ._asdict()
                        for name in features
                        if name in lines
                    },
                }
            )

    def curves(self, stream: str, feature: str, alpha: float | None) -> bytes | None:
        """Return the curves of a feature; None if it has none."""
        with self._state.lock:
            known = self._state.streams.get(stream, StreamState()).curves
            rates = [alpha] if alpha is not None else self._alphas(stream)
            stack = next((known[feature, a] for a in rates if (feature, a) in known), None)
            if stack is None:
                return None
            return _json(
                {
                    "feature": feature,
                    "current": orjson.Fragment(stack.current or b"null"),
                    "earlier": [orjson.Fragment(curve) for curve in stack.earlier],
                    "ice": orjson.Fragment(stack.ice),
                }
            )

    def news(self, asked: Selection, since: int) -> tuple[int, bytes]:
        """Return what came after a version, and the version up to which that is."""
        with self._state.lock:
            chosen, lines = self._chosen(asked)
            stream = self._state.streams.get(chosen.stream or "", StreamState())
            fresh = {
                name: _latest(line, line.since(since, most=FRESH_POINTS))
                for name, line in lines.items()
                if line.version > since
            }
            return self._state.version, _json(
                {
                    "version": self._state.version,
                    "streams": list(self._state.streams),
                    **chosen._asdict(),
                    "features": fresh,
                    "changes": [change for version, change in stream.changes if version > since],
                    **self._numbers(chosen.stream, stream),
                }
            )

    def streams(self, method: Method | None) -> bytes:
        """Return all streams side by side, by a method; not made anew for each page that asks."""
        now = time.monotonic()
        made_at, told = self._told.get(method, (-OVERVIEW_S, b""))
        if now - made_at >= OVERVIEW_S:
            with self._state.lock:
                rows = overview(self._state, self._chooser, method, now)
                told = _json({"rows": rows, "has_more": self._state.has_more_streams})
            self._told[method] = now, told
        return told

    def _chosen(self, asked: Selection) -> tuple[Selection, dict[str, Line]]:
        """Return what is shown, where the page left it open too."""
        streams = self._state.streams
        # not one of which there are only dead letters, unless there is no other
        known = (name for name, stream in streams.items() if stream.newest_seq >= 0)
        name = asked.stream if asked.stream in streams else next(known, next(iter(streams), None))
        if name is None:
            return asked, {}
        return self._chooser.choose(asked._replace(stream=name), streams[name])

    def _alphas(self, stream: str | None) -> list[float]:
        return self._chooser.settings(stream).explain.alphas

    def _loss(self, stream: str | None) -> str:
        loss = self._chooser.settings(stream).explain.loss
        return loss.rpartition(":")[2].replace("_", " ")

    def _numbers(self, name: str | None, stream: StreamState) -> dict[str, Any]:
        operations = self._state.operations
        present = {method for method, _ in stream.lines}
        rates = {alpha for _, alpha in stream.lines}
        return {
            "methods": [method for method in METHODS if method in present],
            "alphas": [alpha for alpha in self._alphas(name) if alpha in rates],
            "curves": list(dict.fromkeys(feature for feature, _ in stream.curves)),
            "records": stream.records,
            "labels": stream.labels,
            "newest_seq": stream.newest_seq,
            "rate": stream.throughput.rate(time.monotonic()),
            "performance": stream.performance.course(COURSE_POINTS),
            "change_count": stream.change_count,
            "letter_count": self._state.letters.count,
            "letters": list(self._state.letters.last),
            "notices": list(self._state.notices),
            "left_out": self._state.left_out,
            "loading": None
            if operations.is_loaded
            else {"read": operations.read, "to_read": operations.to_read},
            "roles": operations.roles,
            "trouble": operations.trouble,
        }


def _latest(line: Line, points: Points) -> dict[str, Any]:
    return {"peak": line.peak, **points._asdict()}


def _json(thing: object) -> bytes:
    return orjson.dumps(thing, option=orjson.OPT_SERIALIZE_NUMPY)
