"""The first stage: predict, ask all that the explanations need, then learn."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from pipeline.config import Config, LabelType
from pipeline.evaluate import Label, NoOutputError, Output, Value, evaluator_for
from pipeline.explain.losses import Target
from pipeline.explain.outputs import predicted_class
from pipeline.models.takeover import taking_over
from pipeline.parts import Part
from pipeline.stages.announced import Found, Models, NotYetError
from pipeline.stages.base import Message, state_without
from pipeline.stages.chain import Sight
from pipeline.stages.evolution import Evolution
from pipeline.stages.late import LateLabels
from pipeline.stages.limits import MAX_RECORD_BYTES, NUMBER_BYTES, check_key, flattened, text_bytes
from pipeline.stages.metering import Meter, Work
from pipeline.stages.missing import Coverage, Filler
from pipeline.stages.origins import Origins
from pipeline.stages.questions import Answers, Question, Questions
from pipeline.stages.sample import Announced, Labelled, Sample, Unusable
from pipeline.stages.shedding import OneOf
from pipeline.stages.validation import ObservationValidator
from pipeline.stages.watch import Watch
from schemas import (
    BadRecordError,
    Change,
    Control,
    DeadLetter,
    Evaluation,
    LateLabel,
    Observation,
    Prediction,
    Record,
)
from schemas.control import NewModel
from schemas.evaluation import Row
from schemas.numbers import are_moderate, is_moderate

T = TypeVar("T")

LONGEST_START = 1000
"""Observations after which there are evaluations of a feature even if nothing was ever asked."""

NOTHING = Answers(ipfi=[], isage=None, ipdp_points=[], ipdp=[])

NO_QUESTION = Question(ipfi={}, isage=None, ipdp={})
"""Of an observation that is not explained."""

MOST_WITHDRAWN = 100
"""Versions to remember until their withdrawal is read in its own place; then the oldest go."""

WHOLE = Part("model")
"""The model role without shards."""


@dataclass(slots=True)
class Awaited:
    """An announced model that has not taken over."""

    model: NewModel
    message: Message


@dataclass(slots=True)
class Published:
    """What the evaluations of one feature, group or pair told so far."""

    classes: list[Label] = field(default_factory=list)
    seq: int | None = None


class Samples(NamedTuple):
    """What explanations keep of the observations."""

    questions: Questions
    filler: Filler
    coverage: Coverage
    evolution: Evolution
    turns: dict[tuple[bool, bool], OneOf]


class ModelStage:
    """One model, for one partition of ``features``: test, then explain, then train.

    Without a label an observation is predicted and has iPDP, and the samplers see it; iPFI, iSAGE
    and learning need the label. If that comes later, they are done then, with the model of then, at
    the seq of the label. An anomaly detector needs none (``label.type = "none"``). A frozen model
    (``model.learn = false``) never learns.

    A shard of the model role keeps a model and samplers like those of any other, and asks for its
    features, groups and pairs only. What concerns the observation as a whole is published by the
    first shard, which also watches the loss.

    Parameters
    ----------
    config
        The settings.
    stream
        Name of the partition; with ``config.seed`` it seeds the random numbers.
    part
        Which shard this is; by default one that asks for all of them.

    Attributes
    ----------
    model
        The model of now.
    meter
        Makes the calls of the model, for whoever wants to know what they take.
    models
        Where models are that are announced.
    """

    meter: Meter | None = None
    models: Models | None = None

    def __init__(self, config: Config, stream: str, part: Part = WHOLE) -> None:
        self.stream = stream
        self._is_first = part.shard == 0
        self._features = config.features
        policies = {name: config.missing.of(name) for name in config.features}
        required = [name for name, policy in policies.items() if policy == "dead-letter"]
        self._validator = ObservationValidator(config.features, config.label.type, required)
        self._skipped = frozenset(name for name, policy in policies.items() if policy == "skip")
        imputed = [name for name, policy in policies.items() if policy == "impute"]
        alpha = config.explain.alphas[0]
        self._filler = Filler(config.features, config.missing.values, imputed, alpha)
        self._coverage = Coverage(config.members, alpha)
        self._evolution = Evolution()
        self.model = config.make_model()
        self._version = config.model.version
        self._awaited: Awaited | None = None
        # read in its own place, the withdrawal of one of these is done already
        self._withdrawn: dict[str, None] = {}
        self._evaluator = config.model.evaluator
        self._learns = config.model.learn
        self._label = config.label.type
        self._has_labels = self._label != "none"
        self._evaluate = evaluator_for(self.model, self._evaluator)
        self._loss = config.loss()
        self._explained = part.share(config.explained)
        self._questions = Questions(config, stream, self._explained)
        # an observation that comes, one that comes with its label, and a label that comes later
        self._turns = {
            (of_loss, of_effect): OneOf(
                config.explain.every,
                random.Random(f"{config.seed}/{stream}/every/{of_loss}/{of_effect}"),
            )
            for of_loss, of_effect in ((False, True), (True, True), (True, False))
        }
        self._skips = 0
        self._published = {name: Published() for name in self._explained}
        self._previous_seq: int | None = None
        self._seen = 0
        self._labels = LateLabels(config.label)
        self._labels_topic = config.topic(LateLabel.TOPIC)
        self._control_topic = config.topic(Control.TOPIC)
        joined = map(config.topic, config.inputs("join"))
        self._origins = Origins(stream, joined) if config.is_joined else None
        learned: Sequence[Samples] | None = config.learned("samples")
        if learned:
            self._questions.go_on([each.questions for each in learned])
            _, self._filler, self._coverage, self._evolution, self._turns = learned[0]
            if self.every != config.explain.every:
                self.every = config.explain.every
        self._has_effects = "ipdp" in config.explain.methods
        self._has_losses = config.explain.methods != ["ipdp"]
        watched = config.drift.of("loss")
        seed = f"{config.seed}/{stream}/loss"
        self._watch = Watch(watched, seed) if watched and self._is_first else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "meter", "models")

    @property
    def samples(self) -> Samples:
        """What was learned of the observations, for a pipeline that starts."""
        kept = self._filler, self._coverage, self._evolution, self._turns
        return Samples(self._questions, *kept)

    def decode(self, message: Message) -> Sample | Labelled | Announced | Unusable:
        """Return the validated observation or label, or why there is none."""
        try:
            return self._validated(message)
        except BadRecordError as error:
            return Unusable(str(error), message)

    def _validated(self, message: Message) -> Sample | Labelled | Announced:
        check_key(message)
        topic = message.origin[0] if self._origins is not None else ""
        fields = message.fields()
        if message.decoded is not None:
            message = replace(message, decoded=None)  # it may be kept, and is large
        if topic == self._control_topic:
            return Announced(self._validator.control(Control.of(fields)), message)
        if topic == self._labels_topic or ("x" not in fields and "id" in fields):
            return Labelled(self._validator.late(LateLabel.of(fields)), message)
        observation = Observation.of(fields)
        x = self._validator.x(observation)
        missing: Sequence[str] = ()
        others: Sequence[str] = ()
        if len(x) < len(self._features):
            missing = [name for name in self._features if name not in x]
        if len(observation.x) > len(x):
            others = [
                name
                for name, value in observation.x.items()
                if value is not None and name not in self._features
            ]
        y = self._validator.y(observation)
        told = observation.id, observation.ts
        return Sample(message.offset, x, y, *told, message, missing, others)

    def step(self, sample: Sample | Labelled | Announced | Unusable) -> Sequence[Record]:
        """Return the prediction, and the evaluations of each feature once samplers are warm.

        Between them there is a change where the loss has changed. Before them are the dead letters
        of what has waited too long for its label, or for its observation.

        If the model fails on the observation itself, or gives an output that is not finite, there
        is a dead letter instead. A feature on whose changed values it fails gets one in place of
        its evaluation; the model learns all the same, so that every shard's does.

        Where topics are joined, a message that was taken before is passed over, as after a crash of
        the join role. One that comes late is taken. What was lost is published as a gap.
        """
        if self._awaited is not None:
            raise RuntimeError(f"model {self._awaited.model.version} is awaited: decide about it")
        if self._origins is None:
            return self._processed(sample)
        try:
            sight, gap = self._origins.take(sample.message)
        except BadRecordError as error:
            # where it is from is not believed, so neither is it named
            reason = sample.message.flaw or str(error)
            letter = replace(sample.message, headers={}).dead_letter(reason)
            return [letter] if self._is_first else []
        notices = [gap] if gap and self._is_first else []
        return notices if sight is Sight.SEEN else [*notices, *self._processed(sample)]

    def _processed(self, sample: Sample | Labelled | Announced | Unusable) -> Sequence[Record]:
        if isinstance(sample, Announced):
            return self._announced(sample)
        letters: list[DeadLetter] = []
        records: list[Record] = []
        try:
            if isinstance(sample, Unusable):
                raise BadRecordError(sample.reason)
            is_observation = isinstance(sample, Sample)
            letters += self._labels.advance(sample.message, is_observation=is_observation)
            joined = self._joined(sample, letters)
            if joined is not None:
                records = self._taken(joined, letters)
        except BadRecordError as error:
            letters.append(sample.message.dead_letter(str(error)))
        return [*letters, *records] if self._is_first else records

    def _announced(self, announced: Announced) -> list[Record]:
        """Apply a control record; a new model is awaited until it is decided about."""
        control, message = announced.control, announced.message
        if control.every is not None:
            self.every = control.every
        if control.withdraw is not None:
            return self._withdrawal(control.withdraw, message)
        if control.model is None:
            return []
        if control.model.version == self._version:  # nobody could tell their explanations apart
            return self._refused(control.model, message, "the one of now has that name")
        self._awaited = Awaited(control.model, message)
        return []

    def _withdrawal(self, version: str, message: Message) -> list[Record]:
        """Take a withdrawal in its own place: it was found ahead, or comes too late."""
        was_done = version in self._withdrawn
        self._withdrawn.pop(version, None)
        if version == self._version:
            reason = f"model {version} is in use and stays: announce another model instead"
        elif was_done:
            return []
        else:
            reason = f"no announcement of model {version} waits: nothing is withdrawn"
        return [message.dead_letter(reason)] if self._is_first else []

    @property
    def awaited(self) -> NewModel | None:
        """The announced model that the next step waits for."""
        return None if self._awaited is None else self._awaited.model

    @property
    def announcement(self) -> Message | None:
        """The message that announced the awaited model."""
        return None if self._awaited is None else self._awaited.message

    @property
    def _waiting(self) -> Awaited:
        if self._awaited is None:
            raise RuntimeError("no model is awaited")
        return self._awaited

    def find(self) -> Found:
        """Load the awaited model, which changes no state; may be called from any thread.

        Raises
        ------
        NotYetError
            If it is not there; the message says what to do.
        """
        model = self._waiting.model
        try:
            if self.models is None:
                raise NotYetError("there is no folder of models")
            return Found(self.models.get(model.sha256))
        except ValueError as error:
            return Found(None, error)
        except NotYetError as error:
            reason = f"model {model.version} was announced, but {error}. Put it there"
            raise NotYetError(reason) from error

    def is_withdrawn_by(self, message: Message) -> bool:
        """Return whether a message withdraws the awaited model; may be called from any thread.

        One that stands before the announcement in the topic ``control`` does not, although it is
        behind it here if it was passed on twice.
        """
        awaited = self._waiting
        topic, partition, offset = message.origin
        if topic != self._control_topic:
            return False
        announced = awaited.message.origin
        if announced[:2] == (topic, partition) and offset <= announced[2]:
            return False
        decoded = self.decode(message)
        if not isinstance(decoded, Announced):
            return False
        return decoded.control.withdraw == awaited.model.version

    def take_over(self, found: Found) -> list[Record]:
        """Go on with the awaited model; return its notice.

        A model that cannot take over becomes a dead letter, and the old one stays.

        Parameters
        ----------
        found
            What :meth:`find` returned.
        """
        awaited, self._awaited = self._waiting, None
        before, version = self._version, awaited.model.version
        try:
            if found.error is not None:
                raise found.error
            model = taking_over(found.model, label=self._label, learns=self._learns)
            self._evaluate = evaluator_for(model, self._evaluator)
        except MemoryError:
            raise
        except Exception as error:  # whatever the model's own code raises
            return self._refused(awaited.model, awaited.message, str(error))
        self.model, self._version = model, version
        self._questions.forget_mean()
        after = "" if before is None else f" from {before}"
        return self._notices_of_model(awaited.message, f"model {version} takes over{after}")

    def withdraw(self) -> list[Record]:
        """Go on with the old model; return the notice of it."""
        awaited, self._awaited = self._waiting, None
        version, stays = awaited.model.version, self._version or "the model before"
        self._withdrawn[version] = None
        for oldest in [*self._withdrawn][:-MOST_WITHDRAWN]:
            del self._withdrawn[oldest]
        detail = f"model {version} was withdrawn before it took over: {stays} stays"
        return self._notices_of_model(awaited.message, detail)

    def _refused(self, model: NewModel, message: Message, reason: str) -> list[Record]:
        letter = message.dead_letter(f"model {model.version} cannot take over: {reason}")
        return [letter] if self._is_first else []

    def _notices_of_model(self, message: Message, detail: str) -> list[Record]:
        if not self._is_first:
            return []
        seq = message.offset
        notice = Change.notice(kind="model", stream=self.stream, seq=seq, detail=detail)
        return [replace(notice, model_version=self._version)]

    @property
    def every(self) -> int:
        """One of how many observations is explained."""
        return self._turns[True, True].k

    @every.setter
    def every(self, k: int) -> None:
        for turn in self._turns.values():
            turn.begin(k)

    def _joined(self, sample: Sample | Labelled, letters: list[DeadLetter]) -> Sample | None:
        """Return an observation with its label if that came before, or the one that a label is of.

        What has to go for it is added to the dead letters.
        """
        if isinstance(sample, Sample):
            return replace(sample, y=self._labels.observe(sample.id, sample.y, letters))
        label, message = sample.label, sample.message
        unlabelled = self._labels.join(label, message, letters)
        if unlabelled is None:
            return None
        ts = unlabelled.ts if label.ts is None else label.ts
        told = label.y, label.id, ts, message
        return Sample(message.offset, unlabelled.x, *told, unlabelled=unlabelled)

    def _taken(self, sample: Sample, letters: list[DeadLetter]) -> list[Record]:
        """Return what is published of an observation, or of one whose label has come."""
        if sample.unlabelled is not None:
            return self._step(sample, letters)
        notices = self._notices(sample) if self._is_first else []
        self._coverage.update(sample.missing)
        if not self._skipped.isdisjoint(sample.missing):
            self._labels.pass_over(sample.id)
            return [*notices, self._prediction(sample, None, None, None)] if self._is_first else []
        filled = sample
        try:
            if sample.missing:
                filled = replace(sample, x=self._filler.filled(sample.x, sample.missing))
        finally:
            # also where something else was missing for the first time
            self._filler.observe(sample.x)
        return [*notices, *self._step(filled, letters)]

    def _notices(self, sample: Sample) -> list[Record]:
        told = self._evolution.see(sample.missing, sample.others)
        return [
            Change.notice(
                kind="schema",
                stream=self.stream,
                seq=sample.seq,
                ts=sample.ts,
                feature=name,
                detail=detail,
            )
            for name, detail in told.items()
        ]

    def _step(self, sample: Sample, letters: list[DeadLetter]) -> list[Record]:
        late = sample.unlabelled
        question = self._question(sample)
        try:
            with _failures_are_the_records():
                prediction, outputs = self._ask(sample, question)
                _check_fits("the prediction", prediction, rows=1)
                _check_classes(prediction, self._label)
                loss = None if sample.y is None else _finite(self._loss(sample.y, prediction))
                if late is None or late.prediction is None:  # each observation counts once
                    self._questions.update_mean(prediction)
        except NoOutputError:
            self._learn(sample)  # it may have nothing to say before it has learned
            return self._told(sample, None, None, letters)
        evaluations: list[Record] = []
        if question is not NO_QUESTION:
            evaluations = self._evaluations(sample, question, prediction, loss, outputs)
        try:
            self._learn(sample)
        except BadRecordError:
            # they are not published, so the next ones must not name them
            for each in evaluations:
                if isinstance(each, Evaluation):
                    self._published[each.feature].seq = each.previous_seq
            raise
        told = self._told(sample, prediction, loss, letters)
        return [*told, *self._loss_changes(sample, loss), *evaluations]

    def _question(self, sample: Sample) -> Question:
        """Return what to ask; nothing if the observation is one of those that are skipped."""
        of_loss, of_effect = sample.y is not None, sample.unlabelled is None
        if not self._turns[of_loss, of_effect].takes():
            self._skips += 1
            return NO_QUESTION
        return self._questions.ask(sample.x, of_loss=of_loss, of_effect=of_effect)

    def _told(
        self,
        sample: Sample,
        output: Output | None,
        loss: float | None,
        letters: list[DeadLetter],
    ) -> list[Record]:
        """Return the prediction of an observation, which waits if it has no label."""
        predicted = _predicted(output)
        if sample.y is None:
            self._labels.wait(sample.id, sample, predicted, letters)
        return [self._prediction(sample, output, predicted, loss)] if self._is_first else []

    def _loss_changes(self, sample: Sample, loss: float | None) -> list[Change]:
        if self._watch is None or loss is None or not is_moderate(loss):
            return []
        shift = self._watch.update(sample.seq, loss, loss)
        if shift is None:
            return []
        ts = sample.ts
        change = self._watch.change(shift, stream=self.stream, seq=sample.seq, ts=ts, method="loss")
        return [replace(change, model_version=self._version)]

    def _ask(self, sample: Sample, question: Question) -> tuple[Output, Sequence[Output] | None]:
        """Return the prediction, and the answers; None for these if the model fails on some."""
        with suppress(Exception):
            prediction, *outputs = self._metered(
                {"prediction": 1, **question.inputs},
                partial(self._evaluate, sample.x, [{}, *question.replacements]),
            )
            _check_moderate([prediction, *outputs])
            return prediction, outputs
        [prediction] = self._metered({"prediction": 1}, partial(self._evaluate, sample.x, [{}]))
        _check_moderate([prediction])
        return prediction, None

    def _metered(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        return call() if self.meter is None else self.meter(shares, call)

    def _evaluations(
        self,
        sample: Sample,
        question: Question,
        prediction: Output,
        loss: float | None,
        outputs: Sequence[Output] | None,
    ) -> list[Record]:
        """Return an evaluation of each feature that is asked about, or was, or is not for long.

        An empty one tells how far the feature is: what is said of several features waits until all
        of them are as far.
        """
        self._seen += 1
        if not self._is_explained(sample):
            return []
        answers: dict[str, Answers] | None = None
        if outputs is not None:
            with suppress(TypeError):  # some are numbers, and some probabilities
                answers = self._questions.answers(question, prediction, outputs)
        records: list[Record] = []
        told = sample, prediction, loss
        for name in self._explained:
            try:
                if answers is None:
                    answer = self._alone(sample, question, prediction, name)
                else:
                    answer = answers.get(name, NOTHING)
                if answer is NOTHING and not self._is_awaited(name):
                    continue
                records.append(self._evaluation(*told, name, answer))
            except (ValueError, NoOutputError) as error:
                records.append(_unusable(sample, name, str(error)))
                with suppress(ValueError):
                    records.append(self._evaluation(*told, name, NOTHING))
        return records

    def _is_explained(self, sample: Sample) -> bool:
        if sample.unlabelled is not None:
            return self._has_losses
        return sample.y is not None or self._has_effects

    def _is_awaited(self, name: str) -> bool:
        return self._published[name].seq is not None or self._seen >= LONGEST_START

    def _alone(
        self, sample: Sample, question: Question, prediction: Output, feature: str
    ) -> Answers:
        """Return the answers about one feature, asked for by itself."""
        about = question.about(feature)
        with _failures_are_the_records():
            ask = partial(self._evaluate, sample.x, about.replacements)
            outputs = self._metered(about.inputs, ask)
            _check_moderate(outputs)
            return self._questions.answers(about, prediction, outputs).get(feature, NOTHING)

    def _learn(self, sample: Sample) -> None:
        with _failures_are_the_records():
            if sample.y is not None and self._learns:
                # a copy: whatever the model does to it, the reservoirs get what was observed
                learn = partial(self.model.learn_one, dict(sample.x), sample.y)
                self._metered({"learning": 1}, learn)
        if sample.unlabelled is None:
            self._questions.update(sample.x)

    def _prediction(
        self,
        sample: Sample,
        output: Output | None,
        predicted: Target | None,
        loss: float | None,
    ) -> Prediction:
        late = sample.unlabelled
        record = Prediction(
            stream=self.stream,
            seq=sample.seq,
            previous_seq=self._previous_seq,
            id=sample.id,
            ts=sample.ts,
            prediction=predicted,
            classes=list(output) if isinstance(output, dict) else None,
            probabilities=list(output.values()) if isinstance(output, dict) else None,
            y=sample.y if self._has_labels else None,
            loss=loss,
            observation=late.seq if late else None,
            first_prediction=late.prediction if late else None,
            labels=self._labels.counts,
            missing=list(sample.missing) or None,
            model_version=self._version,
        )
        self._previous_seq = sample.seq
        return record

    def _evaluation(
        self,
        sample: Sample,
        prediction: Output,
        loss: float | None,
        feature: str,
        answer: Answers,
    ) -> Record:
        published = self._published[feature]
        classes = published.classes
        rows = len(answer.ipfi) + len(answer.ipdp) + 3
        labels = prediction if isinstance(prediction, dict) else ()
        known: Output = dict.fromkeys((*classes, *labels), 0.0)
        _check_fits(f"the answers about {feature}", known, rows, answer.ipdp_points)
        h = _row(prediction, classes)
        record = Evaluation(
            stream=self.stream,
            feature=feature,
            previous_seq=published.seq,
            seqs=[sample.seq],
            ts=[sample.ts],
            y=[sample.y],
            loss=[loss],
            prediction=[h],
            coverage=[self._coverage.of(feature)],
            skipped=[self._skips],
            ipfi=[_rows(answer.ipfi, classes) or None],
            isage=[
                answer.isage and (_row(answer.isage[0], classes), _row(answer.isage[1], classes))
            ],
            ipdp_points=[answer.ipdp_points or None],
            ipdp=[_rows(answer.ipdp, classes) or None],
            classes=list(classes) if isinstance(prediction, dict) else None,
            model_version=self._version,
        )
        published.seq = sample.seq
        return record


@contextmanager
def _failures_are_the_records() -> Iterator[None]:
    """Make what the model or the loss raises a reason why the record cannot be used."""
    try:
        yield
    except (MemoryError, NoOutputError):
        raise
    except Exception as error:
        raise BadRecordError(f"the model failed: {type(error).__name__}: {error}") from error


def _rows(outputs: Sequence[Output], classes: list[Label]) -> list[Row]:
    if all(isinstance(output, dict) for output in outputs):
        dicts = cast(Sequence[dict[Label, float]], outputs)
        if all(map(classes.__eq__, map(list, dicts))):  # as almost always, and quickly seen
            return list(map(list, map(dict.values, dicts)))
    return [_row(output, classes) for output in outputs]


def _row(output: Output, classes: list[Label]) -> Row:
    """Return an output as numbers in the order of the classes, which take in new ones."""
    if not isinstance(output, dict):
        return output
    if list(output) == classes:
        return list(output.values())
    classes += [label for label in output if label not in classes]
    return [output.get(label) for label in classes]


def _unusable(sample: Sample, feature: str, reason: str) -> DeadLetter:
    source = replace(sample.message, key=feature.encode(), headers={})
    return source.dead_letter(f"cannot explain {feature}: {reason}")


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


def _check_classes(output: Output, kind: LabelType) -> None:
    """Raise ``ValueError`` if a class is nothing that a label could be: all losses would be off."""
    could_be = _COULD_BE.get(kind)
    if could_be is None or not isinstance(output, dict):
        return
    other = next((label for label in output if not could_be(label)), None)
    if other is not None:
        raise ValueError(f"it answers with the class {other!r}, but label.type is {kind!r}")


_COULD_BE: Mapping[LabelType, Callable[[Label], bool]] = {
    "boolean": lambda label: label in {False, True},  # 0 and 1 are equal to them
    "integer": lambda label: not isinstance(label, str),
    "string": lambda label: isinstance(label, str),
}


def _check_fits(what: str, output: Output, rows: int, points: Sequence[Value] = ()) -> None:
    """Raise ``ValueError`` if so many outputs like this one would not fit into a message."""
    classes = list(output) if isinstance(output, dict) else []
    numbers = (rows + 1) * max(len(classes), 1) + len(points)
    size = NUMBER_BYTES * numbers + text_bytes(classes) + text_bytes(points)
    if size > MAX_RECORD_BYTES:
        raise ValueError(
            f"{what} may need {size:,} bytes, but a message holds {MAX_RECORD_BYTES:,}: "
            "take fewer grid points, inner samples or classes"
        )


def _finite(loss: float) -> float:
    loss = float(loss)
    if not math.isfinite(loss):
        raise ValueError(f"the loss is not finite: {loss}")
    return loss
