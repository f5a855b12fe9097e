"""Which of a stream's explanations are shown."""

from typing import NamedTuple

from pipeline.config import Config
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.state import StreamState
from schemas.explanation import METHODS, Method


class Selection(NamedTuple):
    """What is shown; None for what there is."""

    stream: str | None = None
    method: Method | None = None
    alpha: float | None = None


class Chooser:
    """Chooses what was left open.

    Parameters
    ----------
    config
        The settings, for which smoothing rate comes first.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._own = config.own_streams

    def settings(self, stream: str | None) -> Config:
        """Return the settings of a stream."""
        return self._config if stream is None else self._own.get(stream, self._config)

    def choose(self, asked: Selection, state: StreamState) -> tuple[Selection, dict[str, Line]]:
        """Return what is shown of a stream, and the courses of its features."""
        methods = [m for m in METHODS if any(method == m for method, _ in state.lines)]
        method = asked.method if asked.method in methods else next(iter(methods), None)
        alphas = self.settings(asked.stream).explain.alphas
        rates = [alpha for alpha in alphas if (method, alpha) in state.lines]
        alpha = asked.alpha if asked.alpha in rates else next(iter(rates), None)
        chosen = Selection(asked.stream, method, alpha)
        if method is None or alpha is None:
            return chosen, {}
        return chosen, state.lines[method, alpha]
