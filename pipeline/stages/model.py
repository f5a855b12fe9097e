"""The first stage: predict, ask all that the explanations need, then learn."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from pipeline.config import Config
from pipeline.evaluate import Label, NoOutputError, Output, Value, evaluator_for
from pipeline.explain.losses import Target
from pipeline.explain.outputs import predicted_class
from pipeline.explain.pdp import PDPGrid
from pipeline.explain.pfi import PFISampler, check_warm_up
from pipeline.explain.sage import SAGEQuestion, SAGESampler
from pipeline.explain.storage import GeometricReservoir, make_reservoir
from pipeline.stages.base import Message
from pipeline.stages.limits import (
    MAX_RECORD_BYTES,
    NUMBER_BYTES,
    are_moderate,
    check_key,
    flattened,
    is_moderate,
    text_bytes,
)
from pipeline.stages.validation import ObservationValidator
from schemas import BadRecordError, Evaluation, Observation, Prediction, Record
from schemas.evaluation import Row


@dataclass(frozen=True, slots=True)
class Sample:
    """An observation that passed validation."""

    seq: int
    x: dict[str, Value]
    y: Target | None
    source: Observation


class ModelStage:
    """One model, for one partition of ``features``: test, then explain, then train.

    Without a label an observation is predicted and has iPDP, and the samplers see it; iPFI, iSAGE
    and learning need the label.

    Parameters
    ----------
    config
        The settings.
    stream
        Name of the partition; with ``config.seed`` it seeds the random numbers.
    """

    def __init__(self, config: Config, stream: str) -> None:
        self.stream = stream
        self._validator = ObservationValidator(config.features, config.label.type)
        self._model = config.make_model()
        self._evaluate = evaluator_for(self._model, config.model.evaluator)
        self._loss = config.loss()
        self._questions = Questions(config, stream)
        self._classes: list[Label] = []
        self._previous_seq: int | None = None
        self._previous_evaluated: int | None = None

    def decode(self, message: Message) -> Sample:
        """Return the validated observation.

        Raises
        ------
        BadRecordError
            If it is not as configured.
        """
        check_key(message)
        observation = Observation.decode(message.value)
        return Sample(
            message.offset,
            self._validator.x(observation),
            self._validator.y(observation),
            observation,
        )

    def step(self, sample: Sample) -> Sequence[Record]:
        """Return the prediction, and the evaluations of each feature once samplers are warm.

        Raises
        ------
        BadRecordError
            If the model fails on the observation, or gives an output that is not finite.
        """
        question = self._questions.ask(sample)
        try:
            with _failures_are_the_records():
                prediction, *outputs = self._evaluate(sample.x, [{}, *question.replacements])
                _check_moderate([prediction, *outputs])
                loss = None if sample.y is None else _finite(self._loss(sample.y, prediction))
                answers = self._questions.answers(question, prediction, outputs)
                _check_size(self._known(prediction), answers)
        except NoOutputError:
            self._learn(sample)  # it may have nothing to say before it has learned
            return [self._prediction(sample, None, None)]
        self._learn(sample)
        records: list[Record] = [self._prediction(sample, prediction, loss)]
        if question.asked:
            records += self._evaluations(sample, prediction, answers)
        return records

    def _learn(self, sample: Sample) -> None:
        with _failures_are_the_records():
            if sample.y is not None:
                # a copy: whatever the model does to it, the reservoirs get what was observed
                self._model.learn_one(dict(sample.x), sample.y)
        self._questions.update(sample.x)

    def _prediction(self, sample: Sample, output: Output | None, loss: float | None) -> Prediction:
        record = Prediction(
            stream=self.stream,
            seq=sample.seq,
            previous_seq=self._previous_seq,
            id=sample.source.id,
            ts=sample.source.ts,
            prediction=_predicted(output),
            classes=list(output) if isinstance(output, dict) else None,
            probabilities=list(output.values()) if isinstance(output, dict) else None,
            y=sample.y,
            loss=loss,
        )
        self._previous_seq = sample.seq
        return record

    def _evaluations(
        self, sample: Sample, prediction: Output, answers: "dict[str, Answers]"
    ) -> list[Evaluation]:
        row = self._row
        h = row(prediction)
        rows = [
            (
                feature,
                _each(row, answer.ipfi),
                answer.isage and (row(answer.isage[0]), row(answer.isage[1])),
                answer.ipdp_points or None,
                _each(row, answer.ipdp),
            )
            for feature, answer in answers.items()
        ]
        classes = list(self._classes) if isinstance(prediction, dict) else None
        records = [
            Evaluation(
                stream=self.stream,
                feature=feature,
                previous_seq=self._previous_evaluated,
                seqs=[sample.seq],
                ts=[sample.source.ts],
                y=[sample.y],
                classes=classes,
                prediction=[h],
                ipfi=[ipfi],
                isage=[isage],
                ipdp_points=[points],
                ipdp=[ipdp],
            )
            for feature, ipfi, isage, points, ipdp in rows
        ]
        self._previous_evaluated = sample.seq
        return records

    def _known(self, output: Output) -> list[Label]:
        labels = output if isinstance(output, dict) else ()
        return list(dict.fromkeys((*self._classes, *labels)))

    def _row(self, output: Output) -> Row:
        if not isinstance(output, dict):
            return output
        if list(output) == self._classes:
            return list(output.values())
        for label in output:
            if label not in self._classes:
                self._classes.append(label)
        return [output.get(label) for label in self._classes]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one observation; ``replacements`` in the order iPFI, iSAGE, iPDP."""

    ipfi: list[dict[str, Value]]
    isage: SAGEQuestion | None
    ipdp: dict[str, list[Value]]

    @property
    def asked(self) -> bool:
        """Whether any method is warm; iSAGE of a single feature then needs no replacement."""
        return bool(self.ipfi or self.isage or any(self.ipdp.values()))

    @property
    def replacements(self) -> list[dict[str, Value]]:
        """All perturbed inputs."""
        return [
            *self.ipfi,
            *(self.isage.replacements if self.isage else ()),
            *({feature: point} for feature, points in self.ipdp.items() for point in points),
        ]


@dataclass(slots=True)
class Answers:
    """The model's outputs that concern one feature; empty or None where nothing was asked."""

    ipfi: list[Output]
    isage: tuple[Output, Output] | None
    ipdp_points: list[Value]
    ipdp: list[Output]


class Questions:
    """The samplers of the configured methods, asked in one go.

    Each method has random numbers of its own, so that switching one off changes no other.
    """

    def __init__(self, config: Config, stream: str) -> None:
        features = list(config.features)
        methods, explain = config.explain.methods, config.explain
        self._features = features
        self._ipfi: PFISampler | None = None
        self._isage: SAGESampler | None = None
        self._ipdp: dict[str, PDPGrid] = {}

        def rng(name: str) -> random.Random:
            return random.Random(f"{config.seed}/{stream}/{name}")

        if "ipfi" in methods:
            pfi, source = explain.ipfi, rng("ipfi")
            self._ipfi = PFISampler(
                features,
                reservoir=make_reservoir(pfi.sampler, pfi.reservoir_size, source),
                warm_up=check_warm_up(pfi.warm_up, pfi.reservoir_size),
                inner_samples=pfi.inner_samples,
                rng=source,
            )
        if "isage" in methods:
            sage, source = explain.isage, rng("isage")
            self._isage = SAGESampler(
                features,
                reservoir=GeometricReservoir(sage.reservoir_size, source),
                alpha=explain.alpha,
                warm_up=check_warm_up(sage.warm_up, sage.reservoir_size),
                inner_samples=sage.inner_samples,
                rng=source,
            )
        if "ipdp" in methods:
            pdp = explain.ipdp
            self._ipdp = {
                feature: PDPGrid(
                    categorical=kind == "categorical",
                    grid_size=pdp.grid_size,
                    storage_size=pdp.storage_size,
                    entrance_probability=pdp.entrance_probability,
                    warm_up=check_warm_up(pdp.warm_up, pdp.storage_size),
                    rng=rng(f"ipdp/{feature}"),
                )
                for feature, kind in config.features.items()
            }

    def ask(self, sample: Sample) -> Question:
        """Return what to ask about an observation."""
        labelled = sample.y is not None
        return Question(
            ipfi=self._ipfi.replacements() if self._ipfi and labelled else [],
            isage=self._isage.question(sample.x) if self._isage and labelled else None,
            ipdp={feature: grid.points() for feature, grid in self._ipdp.items()},
        )

    def answers(
        self, question: Question, prediction: Output, outputs: Sequence[Output]
    ) -> dict[str, Answers]:
        """Return the outputs by feature."""
        rest = iter(outputs)
        ipfi_outputs = list(islice(rest, len(question.ipfi)))
        ipfi = self._ipfi.answers(ipfi_outputs) if self._ipfi and ipfi_outputs else {}
        if self._isage:
            self._isage.update_mean(prediction)
        isage: dict[str, tuple[Output, Output]] = {}
        if self._isage and question.isage:
            asked = list(islice(rest, len(question.isage.replacements)))
            isage = self._isage.answers(question.isage, prediction, asked)
        return {
            feature: Answers(
                ipfi=ipfi.get(feature, []),
                isage=isage.get(feature),
                ipdp_points=question.ipdp.get(feature, []),
                ipdp=list(islice(rest, len(question.ipdp.get(feature, [])))),
            )
            for feature in self._features
        }

    def update(self, x: dict[str, Value]) -> None:
        """Offer the observation to the reservoirs and storages, after it was explained."""
        if self._ipfi:
            self._ipfi.update(x)
        if self._isage:
            self._isage.update(x)
        for feature, grid in self._ipdp.items():
            grid.update(x[feature])


@contextmanager
def _failures_are_the_records() -> Iterator[None]:
    """Make what the model or the loss raises a reason why the record cannot be used."""
    try:
        yield
    except (MemoryError, NoOutputError):
        raise
    except Exception as error:
        raise BadRecordError(f"the model failed: {type(error).__name__}: {error}") from error


def _each(row: Callable[[Output], Row], outputs: Sequence[Output]) -> list[Row] | None:
    return [row(output) for output in outputs] or None


def _predicted(output: Output | None) -> Target | None:
    if not isinstance(output, dict):
        return output
    return predicted_class(output)


def _check_moderate(outputs: Sequence[Output]) -> None:
    """Raise ``ValueError`` if a mean of the outputs could become infinite."""
    numbers = flattened(outputs)
    if not are_moderate(numbers):
        large = next(number for number in numbers if not is_moderate(number))
        raise ValueError(f"the model's output is too large: {large}")


def _check_size(classes: Sequence[Label], answers: dict[str, Answers]) -> None:
    """Raise ``ValueError`` if what one observation becomes would not fit into a message."""
    labels = NUMBER_BYTES * len(classes) + text_bytes(classes)
    for feature, answer in answers.items():
        rows = len(answer.ipfi) + len(answer.ipdp) + 3
        numbers = rows * max(len(classes), 1) + len(answer.ipdp_points)
        size = NUMBER_BYTES * numbers + labels + text_bytes(answer.ipdp_points)
        if size > MAX_RECORD_BYTES:
            raise ValueError(
                f"the answers about {feature} need up to {size:,} bytes, but a message holds "
                f"{MAX_RECORD_BYTES:,}: take fewer grid points, inner samples or classes"
            )


def _finite(loss: float) -> float:
    loss = float(loss)
    if not math.isfinite(loss):
        raise ValueError(f"the loss is not finite: {loss}")
    return loss
