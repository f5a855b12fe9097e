"""Changes of the loss and of the wrong predictions."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fluxplain.config import Config
from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.evidence import EARLIER
from fluxplain.drift.follow_up import OpenChanges, Outcome, Shift
from fluxplain.drift.noticed import noticed
from fluxplain.drift.recent_losses import Losses, RecentLosses
from fluxplain.drift.sentences import sentence
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.evaluate import Value
from fluxplain.explain.losses import Loss, Target
from fluxplain.schemas import FIRST_INCARNATION, Change
from fluxplain.schemas.change import Signal
from fluxplain.schemas.numbers import is_moderate
from fluxplain.stages.contrasts import FormerModel, Older
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.predictions import predicted

MOST_FORMER = 2
"""Largest number of former models that are kept until it is known what became of changes."""


class LossChanges:
    """Watches the loss and the wrong predictions of one stream.

    ``newest_seq`` is where the newest shift of either began, also if it is too small to be a
    change. Without ``is_first``, for shards that publish no changes, these have no evidence.
    """

    def __init__(self, config: Config, stream: str, *, is_first: bool) -> None:
        watched = config.detector("loss")
        each = [watched] if watched else []
        if watched and config.watches_errors:
            each.append(replace(watched, signal="error"))
        self._stream, self._follow_up = stream, config.drift.follow_up
        self._seed = f"{config.seed}/{stream}/loss"
        self._watches = [SignalWatch(one, self._seed, self._follow_up) for one in each]
        self._recent: RecentLosses | None = None
        if each and is_first:
            kinds = {name: name in config.categorical for name in config.features}
            self._recent = RecentLosses(kinds, 3 * self._follow_up + EARLIER)
        self._loss = config.loss()
        self._former: dict[str, FormerModel] = {}
        self.newest_seq: int | None = None
        self._gate, self._open = EffectGate(config.drift.min_effect), OpenChanges()

    @property
    def is_learning(self) -> bool:
        """Whether the loss has fallen steadily since the model's start."""
        return any(watch.is_learning for watch in self._watches)

    def mean(self, newest: int) -> float | None:
        """Return the mean of the ``newest`` losses; None if none are kept."""
        return None if self._recent is None else self._recent.mean_loss(newest)

    def changes(
        self,
        sample: Sample,
        loss: float | None,
        error: float,
        model_version: str | None,
        older: Older | None = None,
    ) -> list[Change]:
        """Take an observation's loss, and whether its prediction is wrong; return the changes.

        ``older`` is the model as it was some time ago.
        """
        if loss is None or sample.y is None or not is_moderate(loss):
            return []
        signals: dict[Signal, float] = {"increment": loss, "error": error}
        if self._recent is not None:
            self._recent.add(sample.seq, sample.id, sample.x, sample.y, signals)
        about: dict[str, Any] = {"stream": self._stream, "model_version": model_version}
        about |= {"seq": sample.seq, "ts": sample.ts, "method": "loss"}
        found = [
            self._change(each, about | {"signal": watch.signal})
            for watch in self._watches
            for each in watch.update(sample.seq, signals[watch.signal], loss, model_version)
        ]
        return [self._finished(each, older) for each in found if each is not None]

    def _change(self, found: Outcome | Shift, about: dict[str, Any]) -> Change | None:
        """Return the change of a signal, without its sentence; None if it is too small."""
        if isinstance(found, Outcome):
            series = None, about["method"], about["signal"]
            return self._open.completed(series, FIRST_INCARNATION, found, others=0.0)
        self.newest_seq = found.begins_seq
        passed = self._gate.passed(noticed(found, **about), others=0.0)
        if passed is not None:
            self._open.add(passed)
        return passed

    def _finished(self, change: Change, older: Older | None) -> Change:
        """Return a change with what is behind it, and its sentence."""
        if self._recent is not None:
            former = self._losses_of_former(change, older)
            change = self._recent.with_what_is_behind(change, self._follow_up, self._seed, former)
        return replace(change, detail=sentence(change))

    def _losses_of_former(self, change: Change, older: Older | None) -> Losses | None:
        """Keep the model from before a change when it is noticed; return its losses afterwards."""
        if change.status != "noticed":
            former = self._former.pop(change.id, None)
            return None if former is None else partial(_losses, self._loss, former)
        if older is not None and older.seq < (change.after_seq or 0):
            self._former[change.id] = older.model
            kept = [*dict.fromkeys(each.seq for each in self._former.values())][-MOST_FORMER:]
            self._former = {i: each for i, each in self._former.items() if each.seq in kept}
        return None


def _losses(
    loss: Loss, former: FormerModel, x: dict[str, Value], y: Target
) -> Mapping[Signal, float]:
    """Return what a model loses on an observation, and whether its prediction is wrong."""
    output = former.output(x)
    return {"increment": float(loss(y, output)), "error": float(predicted(output) != y)}
