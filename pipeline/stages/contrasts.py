"""Compares the model with an older one, so that a change can be traced to the data or the model."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import cast

import numpy as np

from fluxplain.config import Config
from fluxplain.evaluate import Encoding, Evaluator, Output, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain.effects import ice_importances
from fluxplain.explain.method import Answers, ImportanceMethod, labels_of
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.numbers import is_moderate
from fluxplain.stages.active_model import ActiveModel
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.method_set import (
    MethodSet,
    Outputs,
    Questions,
    evaluate,
    evaluate_robustly,
)

AGE = 1_000
"""Explained observations between two copies of the model: the older one that it is compared with
is from one to two times as many observations ago."""

EVERY = 10
"""The models are compared on one of so many explained observations, and on one that was so many
before: neighbours may resemble each other."""

ByFeature = Mapping[str, Mapping[Method, Contrast]]

Moves = dict[tuple[str, Method], float]
"""How far each feature moves the output, by method."""


@dataclass(frozen=True, slots=True)
class FormerModel:
    """The model as it was at observation ``seq``."""

    seq: int
    evaluate: Evaluator
    encoding: Encoding

    def output(self, x: dict[str, Value]) -> Output:
        """Return its output on an observation; raises what the model raises."""
        questions = Questions(self.encoding.observe(x), {})
        [output] = evaluate(self.evaluate, questions).prediction.outputs()
        return output


@dataclass(frozen=True, slots=True)
class Older:
    """The model as it was at observation ``seq``, with its samples, and observations before it."""

    seq: int
    evaluate: Evaluator
    methods: MethodSet
    observations: Sequence[dict[str, Value]]

    @property
    def model(self) -> FormerModel:
        """The model alone."""
        return FormerModel(self.seq, self.evaluate, self.methods.encoding)


class Contrasts:
    """How far each feature moves the output of the model and of an older one.

    On one of ``EVERY`` explained observations, and on one from the time before the older model's
    copy, each with replacements of its time. Labels play no part, since their relation to the
    inputs cannot be told from either of them. ``older`` is the older model, if there is one.
    """

    def __init__(self, config: Config, classes: Mapping[str, Labels]) -> None:
        self._classes = classes
        self._learns = config.model.learn
        self._kinds = config.are_categorical
        self._n = 0
        self._observations: deque[dict[str, Value]] = deque(maxlen=AGE // EVERY)
        self.older: Older | None = None
        self._newer: Older | None = None

    @property
    def is_due(self) -> bool:
        """Whether the models are compared on the next observation."""
        return self.older is not None and self._n % EVERY == 0

    def forget_model(self) -> None:
        """Forget the older models: another one begins."""
        self.older = self._newer = None

    def of(
        self,
        sample: Sample,
        questions: Questions,
        outputs: Outputs,
        methods: MethodSet,
        active: ActiveModel,
    ) -> ByFeature:
        """Return the contrasts by feature; nothing for most observations.

        Features have none on whose inputs a model fails. Called after the model was asked about the
        observation, and before it learns it.
        """
        found: ByFeature = {}
        if self.is_due:
            found = self._compared(sample.seq, questions, outputs, methods, active)
        self._keep(sample, methods, active)
        return found

    def _keep(self, sample: Sample, methods: MethodSet, active: ActiveModel) -> None:
        if self._n % EVERY == 0:
            self._observations.append(dict(sample.x))
        self._n += 1
        if self._n % AGE:
            return
        same = {id(methods.encoding): methods.encoding}
        self.older, self._newer = self._newer, None
        try:
            evaluator = active.copied() if self._learns else active.evaluate
        except MemoryError:
            raise
        except Exception:  # a model may hold what cannot be copied, such as a lock
            return
        own = deepcopy(methods, same)
        self._newer = Older(sample.seq, evaluator, own, [*self._observations])

    def _compared(
        self,
        seq: int,
        questions: Questions,
        outputs: Outputs,
        methods: MethodSet,
        active: ActiveModel,
    ) -> ByFeature:
        older = cast(Older, self.older)
        x = older.observations[self._n // EVERY % len(older.observations)]
        observed = methods.encoding.observe(x)
        then = older.methods.ask(observed, labelled=True, unlabelled=True)
        try:
            new = self._moves(methods, questions, outputs)
            old_then = self._moves(older.methods, then, evaluate_robustly(older.evaluate, then))
            cells = [new, new, old_then, old_then]  # of a model that does not learn
            if self._learns:
                old = evaluate_robustly(older.evaluate, questions)
                new_then = evaluate_robustly(active.evaluate, then)
                cells[1] = self._moves(older.methods, questions, old)
                cells[2] = self._moves(methods, then, new_then)
        except MemoryError:
            raise
        except Exception:  # the model's own code may raise anything
            return {}
        return _contrasts(seq, older.seq, cells)

    def _moves(self, methods: MethodSet, questions: Questions, outputs: Outputs) -> Moves:
        answers, failed = methods.answers(questions, outputs)
        found: Moves = {}
        for method, each in answers.items():
            if METHODS[method].is_curve:
                own = ice_importances(self._kinds, each, self._classes, outputs.prediction.labels)
            else:
                own = self._moved(methods, method, each, outputs.prediction)
            found.update({(name, method): own[name] for name in own if name not in failed})
        return found

    def _moved(
        self, methods: MethodSet, method: Method, answers: Answers, prediction: Table
    ) -> dict[str, float]:
        moves = cast(ImportanceMethod, methods.methods[method]).moves
        found: dict[str, float] = {}
        for labels, places in _places(answers, prediction.labels).items():
            blocks = _aligned(answers.labels, np.asarray(answers.blocks)[places], labels)
            numbers = moves(labels, aligned(prediction, labels), blocks)
            found |= zip([answers.names[place] for place in places], numbers.tolist(), strict=True)
        return found


def _places(answers: Answers, own: Labels) -> dict[Labels, list[int]]:
    """Return the players' places by the labels of their outputs.

    The answers may have more labels, in any order: those of other players, which other shards have.
    """
    everyone = range(len(answers.names))
    if own == answers.labels:
        return {own: [*everyone]}
    found: dict[Labels, list[int]] = {}
    for place in everyone:
        found.setdefault(labels_of((), own, [(answers, place)]), []).append(place)
    return found


def _aligned(given: Labels, blocks: Floats, labels: Labels) -> Floats:
    """Return the outputs by player, shape (players, outputs, labels)."""
    if given == labels:
        return blocks
    flat = Table(given, blocks.reshape(-1, blocks.shape[2]))
    return aligned(flat, labels).reshape(*blocks.shape[:2], len(labels))


def _contrasts(seq: int, since: int, cells: Sequence[Moves]) -> ByFeature:
    """Return the contrasts that have all four numbers, by feature."""
    found: dict[str, dict[Method, Contrast]] = {}
    for name, method in cells[0]:
        numbers = [cell.get((name, method), math.nan) for cell in cells]
        if all(map(is_moderate, numbers)):
            found.setdefault(name, {})[method] = Contrast(seq, since, *numbers)
    return found
