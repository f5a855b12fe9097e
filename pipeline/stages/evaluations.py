"""Collects the model's answers about each observation, for each feature, group and pair."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np

from fluxplain.config import Config
from fluxplain.evaluate.table import Labels
from fluxplain.explain.method import Answers, labels_of
from fluxplain.schemas import DeadLetter, Record
from fluxplain.schemas.dead_letter import CANNOT_EXPLAIN
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.record import MAX_RECORD_BYTES
from fluxplain.stages.contrasts import ByFeature
from fluxplain.stages.evaluated import Evaluated, as_list
from fluxplain.stages.intake.missing import Coverage
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import MAX_TEXT, NUMBER_BYTES, check_fits, text_bytes
from fluxplain.stages.method_set import MethodSet, Outputs, Questions

LONGEST_START = 1000
"""Observations after which every feature gets evaluations, even one that was never asked about."""

TEXT_BYTES = 6 * MAX_TEXT
"""Longest text of an evaluation point in JSON, in bytes."""

Place = tuple[Answers, int]
"""A method's answers, and the position of a feature in them."""


class Evaluations:
    """Collects the answers about each feature: from its first ones on, empty ones too.

    An empty evaluation is a progress marker: incidents and ranks wait until every feature has
    reached the same seq.
    """

    def __init__(self, config: Config, stream: str, explained: Sequence[str]) -> None:
        self._stream = stream
        self._id_with = next(iter(config.explained))
        self._methods = {name: config.methods_of(name) for name in explained}
        needs_label = {METHODS[method].needs_label for method in config.explain.methods}
        self._any_needs_label, self._any_needs_none = True in needs_label, False in needs_label
        self._classes: dict[str, Labels] = dict.fromkeys(explained, ())
        self._previous: dict[str, int | None] = dict.fromkeys(explained)
        self._has_all = False
        self._seen = 0

    def of(
        self,
        sample: Sample,
        methods: MethodSet,
        questions: Questions,
        outputs: Outputs,
        *,
        loss: float | None,
        coverage: Coverage,
        skipped: int,
        model_version: str | None,
        loss_changed_seq: int | None,
        contrasts: ByFeature,
    ) -> list[Record]:
        """Return the answers, and dead letters of features on whose inputs the model failed."""
        self._seen += 1
        if not self._is_explained(sample):
            return []
        answers, failed = methods.answers(questions, outputs)
        classes = self._checked(outputs.prediction.labels, answers, failed)
        records: list[Record] = [_unusable(sample, name, why) for name, why in failed.items()]
        if not classes:
            return records
        evaluated = Evaluated(
            self._stream,
            sample.seq,
            sample.ts,
            sample.y,
            loss,
            skipped,
            outputs.prediction,
            answers,
            self._methods,
            {name: self._previous[name] for name in classes},
            classes,
            {name: coverage.of(name) for name in classes},
            sample.x,
            sample.id,
            self._id_with,
            contrasts or None,
            failed,
            model_version,
            loss_changed_seq,
        )
        # a number of a model of classes changes no known ones
        self._classes.update({n: labels for n, labels in classes.items() if labels != (None,)})
        self._previous.update(dict.fromkeys(classes, sample.seq))
        return [*records, evaluated]

    @property
    def classes(self) -> Mapping[str, Labels]:
        """The classes of each feature's outputs so far; empty for numbers."""
        return self._classes

    def _is_explained(self, sample: Sample) -> bool:
        if sample.unlabelled is not None:
            return self._any_needs_label
        return sample.y is not None or self._any_needs_none

    def _checked(
        self, own: Labels, answers: Mapping[Method, Answers], failed: dict[str, str]
    ) -> dict[str, Labels]:
        """Return the labels of each feature that is evaluated.

        Adds to ``failed`` the features whose outputs are of different kinds, or too large for a
        message.
        """
        given = {own, *[each.labels for each in answers.values()]}
        plain = {known for known in set(self._classes.values()) if _is_plain(known, given, answers)}
        classes: dict[str, Labels] = {}
        places: dict[str, list[Place]] = {}
        for name in self._due(answers):
            known = self._classes[name]
            if known in plain:
                classes[name] = known or own
                continue
            places = places or _places(answers)
            try:
                found = () if name in failed else places.get(name, ())
                classes[name] = _labels(name, known, own, found)
            except ValueError as error:
                failed[name] = str(error)
                with suppress(ValueError):
                    classes[name] = _labels(name, known, own, ())
        return classes

    def _due(self, answers: Mapping[Method, Answers]) -> Collection[str]:
        """Return the features that are evaluated: those with answers, now or before."""
        if self._has_all or self._seen >= LONGEST_START:
            return self._methods
        now = {name for each in answers.values() for name in each.names}
        due = [name for name, seq in self._previous.items() if seq is not None or name in now]
        self._has_all = len(due) == len(self._methods)
        return due


def _is_plain(known: Labels, given: Collection[Labels], answers: Mapping[Method, Answers]) -> bool:
    """Return whether answers with the given labels have no new ones, and none is too large."""
    if known:
        fits = all(each == known or set(each) <= set(known) for each in given)
    else:
        fits = set(given) == {(None,)}
    return fits and _is_small(known or (None,), answers)


def _is_small(labels: Labels, answers: Mapping[Method, Answers]) -> bool:
    """Return whether no feature's answers can be too large for a message."""
    numbers, points = len(labels), 0
    for each in answers.values():
        if isinstance(each.blocks, np.ndarray):
            most = each.blocks.shape[1]
        else:
            most = max(map(len, each.blocks), default=0)
        numbers += most * len(labels)
        points += 0 if each.points is None else most
    size = NUMBER_BYTES * numbers + (NUMBER_BYTES + TEXT_BYTES) * points
    return size + text_bytes(label for label in labels if label is not None) <= MAX_RECORD_BYTES


def _places(answers: Mapping[Method, Answers]) -> dict[str, list[Place]]:
    places: dict[str, list[Place]] = {}
    for each in answers.values():
        for place, name in enumerate(each.names):
            places.setdefault(name, []).append((each, place))
    return places


def _labels(name: str, known: Labels, own: Labels, found: Collection[Place]) -> Labels:
    """Return the labels of a feature's outputs; see :func:`~fluxplain.explain.method.labels_of`.

    Raises ``ValueError`` also if the outputs are too large for a message.
    """
    labels = labels_of(known, own, found)
    outputs = sum(len(each.blocks[place]) for each, place in found)
    axes = [each.points[place] for each, place in found if each.points is not None]
    points = [*chain.from_iterable(map(as_list, axes))]
    texts = [*points, *(label for label in labels if label is not None)]
    check_fits(f"the answers about {name}", (1 + outputs) * len(labels) + len(points), texts)
    return labels


def _unusable(sample: Sample, feature: str, reason: str) -> DeadLetter:
    source = replace(sample.message, key=feature.encode(), headers={})
    return source.dead_letter(f"{CANNOT_EXPLAIN}{feature}: {reason}")
