"""Makes evaluations of the model's outputs: one for each feature, group and pair."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from fluxplain.config import Config
from fluxplain.evaluate import Label, Table
from fluxplain.evaluate.table import MIXED, Labels, aligned
from fluxplain.schemas import DeadLetter, Evaluation, Record
from fluxplain.schemas.evaluation import Row
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.stages.intake.missing import Coverage
from fluxplain.stages.intake.sample import Sample
from fluxplain.stages.limits import check_fits
from fluxplain.stages.method_set import Block, MethodSet, Outputs, Questions

LONGEST_START = 1000
"""Observations after which every feature gets evaluations, even one that was never asked about."""


@dataclass(slots=True)
class Published:
    """The classes, and the seq of the last evaluation, of one feature, group or pair."""

    classes: list[Label] = field(default_factory=list)
    seq: int | None = None


class Evaluations:
    """Writes an evaluation of each feature: from its first answers on, empty ones too.

    An empty evaluation is a progress marker: incidents and ranks wait until every feature has
    reached the same seq.
    """

    def __init__(self, config: Config, stream: str, explained: Sequence[str]) -> None:
        self._stream = stream
        self._methods = {name: config.methods_of(name) for name in explained}
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
        for name in self._methods:
            own, fields = blocks.get(name, {}), {**common, "coverage": [coverage.of(name)]}
            try:
                if name in failed:
                    raise ValueError(failed[name])
                if own or self._is_awaited(name):
                    records.append(self._evaluation(name, outputs.prediction, own, fields))
            except ValueError as error:
                records.append(_unusable(sample, name, str(error)))
                with suppress(ValueError):
                    records.append(self._evaluation(name, outputs.prediction, {}, fields))
        return records

    def _is_explained(self, sample: Sample) -> bool:
        if sample.unlabelled is not None:
            return self._any_needs_label
        return sample.y is not None or self._any_needs_none

    def _is_awaited(self, name: str) -> bool:
        return self._published[name].seq is not None or self._seen >= LONGEST_START

    def _evaluation(
        self,
        name: str,
        prediction: Table,
        blocks: Mapping[Method, Block],
        fields: Mapping[str, Any],
    ) -> Evaluation:
        """Return the next evaluation of a feature.

        Raises ``ValueError`` if the outputs are of different kinds, or too large for a message.
        """
        published, methods = self._published[name], self._methods[name]
        tables = [prediction, *[block.outputs for block in blocks.values()]]
        labels = _labels(published.classes, tables)
        is_number = labels == (None,)
        classes = [] if is_number else [label for label in labels if label is not None]
        numbers = sum([len(table.numbers) for table in tables]) * len(labels)
        points = [point for block in blocks.values() for point in block.points or ()]
        check_fits(f"the answers about {name}", numbers + len(points), [*classes, *points])
        evaluation = Evaluation(
            **fields,
            feature=name,
            previous_seq=published.seq,
            prediction=_rows(prediction, labels),
            outputs={
                method: [_rows(blocks[method].outputs, labels) if method in blocks else None]
                for method in methods
            },
            points={
                method: [blocks[method].points if method in blocks else None]
                for method in methods
                if METHODS[method].is_curve
            },
            classes=None if is_number else classes,
        )
        published.seq = evaluation.seqs[0]
        published.classes = published.classes if is_number else classes
        return evaluation


def _labels(known: Sequence[Label], tables: Sequence[Table]) -> Labels:
    """Return the known labels, followed by the new ones of some outputs."""
    labels = tuple(dict.fromkeys(label for table in tables for label in table.labels))
    if None not in labels:
        return tuple(dict.fromkeys((*known, *labels)))
    if labels != (None,):
        raise ValueError(MIXED)
    return labels


def _rows(table: Table, labels: Labels) -> list[Row]:
    """Return outputs as rows of an evaluation, one column per label."""
    numbers = aligned(table, labels)
    rows: list[Row] = (numbers[:, 0] if labels == (None,) else numbers).tolist()
    return rows


def _unusable(sample: Sample, feature: str, reason: str) -> DeadLetter:
    source = replace(sample.message, key=feature.encode(), headers={})
    return source.dead_letter(f"cannot explain {feature}: {reason}")
