"""The first stage: predict, evaluate the inputs that the explanations need, then learn."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.evaluate import NoOutputError, Observed, Output
from fluxplain.schemas import BadRecordError, Change, Record
from fluxplain.schemas.dead_letter import MODEL_FAILED, NO_REASONS
from fluxplain.stages.active_model import ActiveModel, FoundModel
from fluxplain.stages.autocorrelation_watch import AutocorrelationWatch
from fluxplain.stages.contrasts import ByFeature, Contrasts, Older
from fluxplain.stages.distributions import Distributions
from fluxplain.stages.evaluations import Evaluations
from fluxplain.stages.intake.intake import Decoded, Intake
from fluxplain.stages.intake.missing import Coverage, Filler
from fluxplain.stages.intake.sample import ControlMessage, Sample
from fluxplain.stages.intake.schema_drift import SchemaDrift
from fluxplain.stages.intake.subsampling import Subsampling
from fluxplain.stages.loss_changes import LossChanges
from fluxplain.stages.metering import Meter, Work
from fluxplain.stages.method_set import MethodSet, Outputs, Questions, evaluate, evaluate_each
from fluxplain.stages.predictions import Predictions, predicted
from fluxplain.stages.stage import Message, state_without
from fluxplain.stages.stream_reasons import StreamReasons

T = TypeVar("T")

WHOLE = Replica("model")
"""The model role without shards."""


class Samples(NamedTuple):
    """Samples and statistics of past observations, for a warm start."""

    methods: MethodSet
    filler: Filler
    coverage: Coverage
    schema_drift: SchemaDrift
    turns: Subsampling


class Answer(NamedTuple):
    """The model's outputs about an observation, its output on the observation itself, its loss."""

    outputs: Outputs | None
    output: Output | None
    loss: float | None


NO_ANSWER = Answer(None, None, None)


class ModelStage:
    """One model, for one partition of ``features``: test, then explain, then train.

    Without a label an observation gets a prediction and iPDP, and enters the samples. iPFI, iSAGE
    and learning need the label; if it comes later, they use the model of that time, at the label's
    seq. An anomaly detector needs none (``label.type = "none"``). A frozen model
    (``model.learn = false``) never learns.

    All shards of the model role keep the same model and samples; each explains its own features,
    groups and pairs. All watch the loss and the wrong predictions, since their evaluations say when
    these changed; only the first one publishes the records about the whole observation. ``meter``
    is injected.
    """

    meter: Meter | None = None

    def __init__(self, config: Config, stream: str, replica: Replica = WHOLE) -> None:
        def rng_of(name: str) -> random.Random:
            return random.Random(f"{config.seed}/{stream}/{name}")

        self.stream = stream
        self._is_first = replica.shard == 0
        explained = replica.share(config.explained)
        self.active = ActiveModel(config, stream)
        self._intake = Intake(config, stream)
        self._turns = Subsampling(config.explain.every, rng_of)
        self._methods = MethodSet(config, explained, rng_of)
        self._autocorrelation = AutocorrelationWatch(config)
        self._predictions = Predictions(config, stream)
        self._evaluations = Evaluations(config, stream, explained)
        gives = config.reasons.enabled and self._is_first
        self._reasons = StreamReasons(config, stream) if gives else None
        self._learns = config.model.learn
        classes = self._evaluations.classes
        self._contrasts = Contrasts(config, classes) if config.drift.causes else None
        learned: Sequence[Samples] | None = config.learned("samples")
        if learned:
            self._start_from(learned, config.explain.every)
        self._loss_changes = LossChanges(config, stream, is_first=self._is_first)
        self._distributions = Distributions(config, stream) if self._is_first else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "meter")

    def _start_from(self, learned: Sequence[Samples], every: int) -> None:
        self._methods.take_over([each.methods for each in learned])
        intake = self._intake
        _, intake.filler, intake.coverage, intake.schema_drift, self._turns = learned[0]
        if self.every != every:
            self.every = every

    @property
    def samples(self) -> Samples:
        """The samples, for a pipeline that starts from them."""
        intake = self._intake
        return Samples(
            self._methods, intake.filler, intake.coverage, intake.schema_drift, self._turns
        )

    @property
    def model(self) -> Any:
        """The model in use."""
        return self.active.model

    @property
    def every(self) -> int:
        """One of this many observations is explained."""
        return self._turns.every

    @every.setter
    def every(self, k: int) -> None:
        self._turns.every = k

    def mean_loss(self, newest: int) -> float | None:
        """Return the mean of the ``newest`` losses; None if none are kept."""
        return self._loss_changes.mean(newest)

    def ask_reasons(self, config: Config, seq: int) -> None:
        """Give the reasons for the output on this observation, and on no other.

        Where the settings give none, it is compared with observations from here on.
        """
        if self._reasons is None:
            self._reasons = StreamReasons(config, self.stream)
        self._reasons.asked_seq = seq

    def decode(self, message: Message) -> Decoded:
        """Return the validated observation, label or control record, or why it is unusable."""
        return self._intake.decode(message)

    def step(self, decoded: Decoded) -> Sequence[Record]:
        """Return the prediction, and the answers about all features once the samples are warm.

        Notices and dead letters of items that waited too long come first; changes of the loss and
        of the errors follow the prediction.

        If the model fails on the observation itself, or its output is not finite, a dead letter
        replaces all of them. If it fails on a feature's inputs, a dead letter replaces that
        evaluation; the model still learns, so that it stays the same in every shard.
        """
        if self.active.awaited is not None:
            version = self.active.awaited.model.version
            raise RuntimeError(f"model {version} is awaited: decide about it")
        of_all: list[Record] = []
        evaluations: Sequence[Record] = ()
        try:
            taken = self._intake.take(decoded, of_all)
            if isinstance(taken, ControlMessage):
                of_all += self._apply(taken)
            elif taken is not None:
                evaluations = self._observe(taken, of_all)
        except BadRecordError as error:
            of_all.append(decoded.message.dead_letter(str(error)))
        return [*of_all, *evaluations] if self._is_first else evaluations

    def _observe(self, sample: Sample, of_all: list[Record]) -> Sequence[Record]:
        """Return the answers; add the records about the whole observation to ``of_all``."""
        if sample.is_skipped:
            of_all += self._publish(sample, NO_ANSWER)
            return []
        if self._reasons is not None:
            self._reasons.prepare(self._methods.encoding)
        observed = self._methods.observe(sample.x)
        questions = self._ask(sample, observed)
        answer = self._predict(sample, questions or Questions(observed, {}))
        reasons = self._give_reasons(sample, observed, answer)
        contrasts = self._contrasted(sample, questions, answer)
        self._learn(sample)
        evaluations = (
            [] if questions is None else self._explain(sample, questions, answer, contrasts)
        )
        if sample.unlabelled is None:
            self._methods.store(observed)
            if self._reasons is not None:
                self._reasons.store(observed)
            if self._is_first:
                of_all += self._autocorrelation.notices(self.stream, sample)
        if sample.y is None:
            self._intake.labels.wait(sample, predicted(answer.output), of_all)
        of_all += [*self._publish(sample, answer), *reasons]
        return evaluations

    def _ask(self, sample: Sample, observed: Observed) -> Questions | None:
        """Return the questions about an observation; None if it is not explained."""
        labelled, unlabelled = sample.y is not None, sample.unlabelled is None
        if not self._turns.takes(labelled=labelled, unlabelled=unlabelled):
            return None
        return self._methods.ask(observed, labelled=labelled, unlabelled=unlabelled)

    def _predict(self, sample: Sample, questions: Questions) -> Answer:
        """Return the model's outputs on an observation and on the questions about it."""
        evaluator, shares = self.active.evaluate, {"prediction": 1, **questions.inputs}
        try:
            with _failures_are_the_records():
                try:
                    outputs = self._metered(shares, partial(evaluate, evaluator, questions))
                except Exception:  # one input at a time: it fails on some of them
                    outputs = self._metered(shares, partial(evaluate_each, evaluator, questions))
                [output] = outputs.prediction.outputs()
                loss = self._predictions.loss(sample, output)
                late = sample.unlabelled
                if late is None or late.prediction is None:  # each observation counts once
                    self._methods.see(outputs.prediction)
        except NoOutputError:
            return NO_ANSWER  # some models have no output before they learn
        return Answer(outputs, output, loss)

    def _give_reasons(self, sample: Sample, observed: Observed, answer: Answer) -> list[Record]:
        """Return the reasons for the output on an observation, once, before the model learns it.

        If the model fails on the inputs that they need, a dead letter replaces them.
        """
        reasons, late = self._reasons, sample.unlabelled is not None
        if reasons is None or answer.outputs is None or late:
            return []
        prediction, evaluator = answer.outputs.prediction, self.active.evaluate
        give = partial(reasons.of, sample, observed, prediction, evaluator, self.active.version)
        try:
            with _failures_are_the_records():
                return [*self._metered({"reasons": 1}, give)]
        except (BadRecordError, NoOutputError) as error:
            return [sample.message.dead_letter(f"{NO_REASONS}{error}")]

    def _learn(self, sample: Sample) -> None:
        if sample.y is None or not self._learns:
            return
        # a copy: the model may change it, and the reservoirs need the original
        learn = partial(self.active.model.learn_one, dict(sample.x), sample.y)
        try:
            with _failures_are_the_records():
                self._metered({"learning": 1}, learn)
        except BadRecordError:
            self.active.forget_copies()
            raise

    def _contrasted(self, sample: Sample, questions: Questions | None, answer: Answer) -> ByFeature:
        """Return the contrasts with an older model, before the model learns the observation."""
        if self._contrasts is None or questions is None or answer.outputs is None:
            return {}
        asked = sample, questions, answer.outputs
        compare = partial(self._contrasts.of, *asked, self._methods, self.active)
        if not self._contrasts.is_due:
            return compare()
        return self._metered({"contrasts": 1}, compare)

    def _explain(
        self, sample: Sample, questions: Questions, answer: Answer, contrasts: ByFeature
    ) -> list[Record]:
        """Return the answers about the features; none if the model had no output."""
        if answer.outputs is None:
            return []
        return self._evaluations.of(
            sample,
            self._methods,
            questions,
            answer.outputs,
            loss=answer.loss,
            coverage=self._intake.coverage,
            skipped=self._turns.skipped,
            model_version=self.active.version,
            loss_changed_seq=self._loss_changes.newest_seq,
            contrasts=contrasts,
        )

    def _publish(self, sample: Sample, answer: Answer) -> list[Record]:
        """Return the prediction, and changes of the loss, errors, inputs and predictions."""
        counts, version, loss = self._intake.labels.counts, self.active.version, answer.loss
        prediction = self._predictions.of(
            sample, answer.output, loss, labels=counts, model_version=version
        )
        return [
            prediction,
            *self._loss_changes.changes(sample, loss, prediction.error, version, self._older),
            *self._changes_of_distributions(sample, answer.output),
        ]

    @property
    def _older(self) -> Older | None:
        """The model as it was some time ago, if it was another one."""
        return self._contrasts.older if self._learns and self._contrasts is not None else None

    def _changes_of_distributions(self, sample: Sample, output: Output | None) -> list[Change]:
        if self._distributions is None:
            return []
        return self._distributions.changes(
            sample,
            output,
            is_learning=lambda: self._loss_changes.is_learning,
            model_version=self.active.version,
        )

    def _apply(self, control: ControlMessage) -> list[Record]:
        if control.control.every is not None:
            self.every = control.control.every
        return self.active.apply(control)

    def conclude(self, found: FoundModel | None) -> Sequence[Record]:
        """Take over the awaited model, or withdraw it (None); return its notice."""
        before = self.active.version
        records = self.active.withdraw() if found is None else self.active.take_over(found)
        if self.active.version != before:
            self._methods.forget_model()
            if self._contrasts is not None:
                self._contrasts.forget_model()
        return records if self._is_first else []

    def _metered(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        return call() if self.meter is None else self.meter(shares, call)


@contextmanager
def _failures_are_the_records() -> Iterator[None]:
    """Turn errors of the model or the loss into ``BadRecordError``."""
    try:
        yield
    except (MemoryError, NoOutputError):
        raise
    except Exception as error:
        raise BadRecordError(f"{MODEL_FAILED}{type(error).__name__}: {error}") from error
