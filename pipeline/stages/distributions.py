"""Detects changes of the distributions of the inputs and the predictions."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from fluxplain.config import Config
from fluxplain.drift.distribution import Found, NumberDistribution, ShareWatch
from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.follow_up import OpenChanges, Outcome
from fluxplain.drift.glr_rows import BLOCK
from fluxplain.drift.noticed import noticed
from fluxplain.drift.sentences import sentence
from fluxplain.drift.share_history import Shares
from fluxplain.evaluate import Output, Value
from fluxplain.schemas import FIRST_INCARNATION, Change
from fluxplain.schemas.numbers import are_moderate, is_moderate
from fluxplain.stages.intake.sample import Sample


class _Observation(NamedTuple):
    """The values of an observation, without imputed ones, and its prediction."""

    seq: int
    x: Mapping[str, Value]
    output: Output | None


def _number(feature: str, of: _Observation) -> float | None:
    return float(of.x[feature]) if feature in of.x else None


def _category(feature: str, of: _Observation) -> Shares | None:
    return {of.x[feature]: 1.0} if feature in of.x else None


def _predicted_number(of: _Observation) -> float | None:
    if of.output is None or isinstance(of.output, dict) or not is_moderate(of.output):
        return None
    return float(of.output)


def _probabilities(of: _Observation) -> Shares | None:
    if not isinstance(of.output, dict) or not of.output or not are_moderate(of.output.values()):
        return None
    return dict(of.output.items())


class _Series:
    """The values of a feature, or the predictions, collected into blocks."""

    def __init__(
        self,
        read: Callable[[_Observation], Any],
        watch: NumberDistribution | ShareWatch,
        feature: str | None = None,
    ) -> None:
        self.feature = feature
        self._read, self._watch = read, watch
        self._seqs: list[int] = []
        self._values: list[Any] = []

    def take(self, observations: Sequence[_Observation]) -> Iterator[tuple[int, Found]]:
        """Add observations; yield findings of full blocks, with the last seq of the block."""
        for each in observations:
            value = self._read(each)
            if value is not None:
                self._seqs.append(each.seq)
                self._values.append(value)
        while len(self._seqs) >= BLOCK:
            seqs, self._seqs = self._seqs[:BLOCK], self._seqs[BLOCK:]
            values, self._values = self._values[:BLOCK], self._values[BLOCK:]
            for found in self._watch.update_block(seqs, values):
                yield seqs[-1], found


class Distributions:
    """Watches the values of all features, and the predictions, of one stream.

    An observation counts once, when it arrives, even if its label comes later. Imputed values do
    not count. Blocks of observations take half of the time that single ones would.
    """

    def __init__(self, config: Config, stream: str) -> None:
        drift = config.drift
        features = config.features if drift.input.enabled else {}
        series = len(features) + drift.output.enabled
        given = drift.false_alarms / max(series, 1), drift.follow_up
        self._stream = stream
        self._series = [
            _Series(partial(_category, name), ShareWatch(*given), name)
            if kind == "categorical"
            else _Series(partial(_number, name), NumberDistribution(*given), name)
            for name, kind in features.items()
        ]
        if drift.output.enabled:  # a model has outputs of one kind
            self._series.append(_Series(_predicted_number, NumberDistribution(*given)))
            self._series.append(_Series(_probabilities, ShareWatch(*given, math.inf)))
        self._waiting: list[_Observation] = []
        self._gate, self._open = EffectGate(drift.min_effect), OpenChanges()

    def changes(
        self,
        sample: Sample,
        output: Output | None,
        *,
        is_learning: Callable[[], bool],
        model_version: str | None,
    ) -> list[Change]:
        """Add an observation and its prediction; return the changes found.

        Changes of the predictions are marked if the model is still learning.
        """
        if sample.unlabelled is not None:
            return []
        x = {name: value for name, value in sample.x.items() if name not in sample.missing}
        self._waiting.append(_Observation(sample.seq, x, output))
        if len(self._waiting) < BLOCK:
            return []
        about: dict[str, Any] = {
            "stream": self._stream,
            "ts": sample.ts,
            "model_version": model_version,
        }
        found = [
            self._change(each, about | {"seq": seq, "feature": series.feature}, is_learning)
            for series in self._series
            for seq, each in series.take(self._waiting)
        ]
        self._waiting = []
        return [replace(each, detail=sentence(each)) for each in found if each is not None]

    def _change(
        self, of: Found, about: dict[str, Any], is_learning: Callable[[], bool]
    ) -> Change | None:
        """Return a change without its sentence; None if it is too small."""
        found, watch = of
        feature = about["feature"]
        if isinstance(found, Outcome):
            series = feature, None, watch.signal
            return self._open.completed(series, FIRST_INCARNATION, found, others=0.0)
        about |= {"kind": "output" if feature is None else "input", "signal": watch.signal}
        shift = found._replace(learning=feature is None and is_learning())
        change = noticed(shift, **about, category=watch.category)
        passed = self._gate.passed(change, spread=shift.spread)
        if passed is not None:
            self._open.add(passed)
        return passed
