"""Makes evaluations of the model's outputs: one for each feature, group and pair."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluxplain.config import Config
from fluxplain.evaluate import Table, Value
from fluxplain.evaluate.table import MIXED, Labels, aligned
from fluxplain.schemas import DeadLetter, Evaluation, Record
from fluxplain.schemas.evaluation import Row
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.stages.intake.missing import Coverage
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import check_fits
from fluxplain.stages.method_set import Block, MethodSet, Outputs, Questions, rows_of

LONGEST_START = 1000
"""Observations after which every feature gets evaluations, even one that was never asked about."""


@dataclass(slots=True)
class Published:
    """The classes, and the seq of the last evaluation, of one feature, group or pair."""

    classes: Labels = ()
    seq: int | None = None


class Evaluations:
    """Writes an evaluation of each feature: from its first answers on, empty ones too.

    An empty evaluation is a progress marker: incidents and ranks wait until every feature has
    reached the same seq.
    """

    def __init__(self, config: Config, stream: str, explained: Sequence[str]) -> None:
        self._stream = stream
        # of each name its methods, as if none had answered
        self._nothing = {name: _none(config.methods_of(name)) for name in explained}
        curves = [method for method, info in METHODS.items() if info.is_curve]
        self._no_points = {
            name: _none([m for m in methods if m in curves])
            for name, methods in self._nothing.items()
        }
        needs_label = {METHODS[method].needs_label for method in config.explain.methods}
        self._any_needs_label, self._any_needs_none = True in needs_label, False in needs_label
        self._published = {name: Published() for name in explained}
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
    ) -> list[Record]:
        """Return the evaluations, and dead letters of features on whose inputs the model failed."""
        self._seen += 1
        if not self._is_explained(sample):
            return []
        blocks, failed = methods.answers(questions, outputs)
        own = Block(outputs.prediction.labels, rows_of(outputs.prediction), None)
        common = {
            "stream": self._stream,
            "seqs": [sample.seq],
            "ts": [sample.ts],
            "y": [sample.y],
            "loss": [loss],
            "skipped": [skipped],
            "model_version": model_version,
        }
        records: list[Record] = []
        for name in self._nothing:
            answers, fields = blocks.get(name, {}), {**common, "coverage": [coverage.of(name)]}
            try:
                if name in failed:
                    raise ValueError(failed[name])
                if answers or self._is_awaited(name):
                    records.append(self._evaluation(name, own, answers, fields))
            except ValueError as error:
                records.append(_unusable(sample, name, str(error)))
                with suppress(ValueError):
                    records.append(self._evaluation(name, own, {}, fields))
        return records

    def _is_explained(self, sample: Sample) -> bool:
        if sample.unlabelled is not None:
            return self._any_needs_label
        return sample.y is not None or self._any_needs_none

    def _is_awaited(self, name: str) -> bool:
        return self._published[name].seq is not None or self._seen >= LONGEST_START

    def _evaluation(
        self, name: str, own: Block, answers: Mapping[Method, Block], fields: Mapping[str, Any]
    ) -> Evaluation:
        """Return the next evaluation of a feature.

        Raises ``ValueError`` if the outputs are of different kinds, or too large for a message.
        """
        published = self._published[name]
        blocks = [own, *answers.values()]
        labels = _labels(published.classes, blocks)
        is_number = labels == (None,)
        classes = [] if is_number else [label for label in labels if label is not None]
        numbers, texts = 0, list[Value](classes)
        for block in blocks:
            numbers += len(block.rows) * len(labels)
            texts += block.points or ()
        check_fits(f"the answers about {name}", numbers + len(texts) - len(classes), texts)
        outputs: dict[Method, list[list[Row] | None]] = dict(self._nothing[name])
        points: dict[Method, list[list[Value] | None]] = dict(self._no_points[name])
        for method, block in answers.items():
            outputs[method] = [_rows(block, labels)]
            if method in points:
                points[method] = [block.points]
        evaluation = Evaluation(
            **fields,
            feature=name,
            previous_seq=published.seq,
            prediction=_rows(own, labels),
            outputs=outputs,
            points=points,
            classes=None if is_number else classes,
        )
        published.seq = evaluation.seqs[0]
        published.classes = published.classes if is_number else labels
        return evaluation


def _none(methods: Iterable[Method]) -> dict[Method, list[Any]]:
    return {method: [None] for method in methods}


def _labels(known: Labels, blocks: Sequence[Block]) -> Labels:
    """Return the known labels, followed by the new ones of some outputs."""
    first = blocks[0].labels
    if first in {known, (None,)} and {block.labels for block in blocks} == {first}:
        return first
    labels = tuple(dict.fromkeys(label for block in blocks for label in block.labels))
    if None not in labels:
        return tuple(dict.fromkeys((*known, *labels)))
    if labels != (None,):
        raise ValueError(MIXED)
    return labels


def _rows(block: Block, labels: Labels) -> list[Row]:
    """Return outputs as rows of an evaluation, one column per label."""
    if block.labels == labels:
        return block.rows
    numbers = np.array(block.rows).reshape(len(block.rows), -1)
    return rows_of(Table(labels, aligned(Table(block.labels, numbers), labels)))


def _unusable(sample: Sample, feature: str, reason: str) -> DeadLetter:
    source = replace(sample.message, key=feature.encode(), headers={})
    return source.dead_letter(f"cannot explain {feature}: {reason}")
