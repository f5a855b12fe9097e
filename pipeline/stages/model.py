"""The first stage: predict, ask all that the explanations need, then learn."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.drift.watch import Watch
from fluxplain.evaluate import NoOutputError, Observed
from fluxplain.schemas import BadRecordError, Change, Record
from fluxplain.schemas.numbers import is_moderate
from fluxplain.stages.asking import Asked, Asking, Outputs, evaluate, evaluate_each
from fluxplain.stages.base import Message, state_without
from fluxplain.stages.evaluations import Evaluations
from fluxplain.stages.exchange import Exchange, Found
from fluxplain.stages.intake.intake import Decoded, Intake
from fluxplain.stages.intake.missing import Coverage, Filler
from fluxplain.stages.intake.sample import Announced, Sample
from fluxplain.stages.intake.schema_drift import Evolution
from fluxplain.stages.intake.subsampling import Subsampling
from fluxplain.stages.metering import Meter, Work
from fluxplain.stages.predictions import Predictions, predicted

T = TypeVar("T")

WHOLE = Replica("model")
"""The model role without shards."""


class Samples(NamedTuple):
    """What explanations keep of the observations."""

    asking: Asking
    filler: Filler
    coverage: Coverage
    evolution: Evolution
    turns: Subsampling


class ModelStage:
    """One model, for one partition of ``features``: test, then explain, then train.

    Without a label an observation is predicted and has iPDP, and the samplers see it; iPFI, iSAGE
    and learning need the label. If that comes later, they are done then, with the model of then, at
    the seq of the label. An anomaly detector needs none (``label.type = "none"``). A frozen model
    (``model.learn = false``) never learns.

    A shard of the model role keeps the same model and samplers as the others, and asks for its
    own features, groups and pairs. The first shard alone publishes what concerns the observation as
    a whole, and watches the loss.

    Attributes
    ----------
    exchange
        The model in use, and the announced one.
    meter
        Times the calls of the model; injected, and no part of the state.
    """

    meter: Meter | None = None

    def __init__(self, config: Config, stream: str, replica: Replica = WHOLE) -> None:
        def rng_of(name: str) -> random.Random:
            return random.Random(f"{config.seed}/{stream}/{name}")

        self.stream = stream
        self._is_first = replica.shard == 0
        explained = replica.share(config.explained)
        self.exchange = Exchange(config, stream)
        self._intake = Intake(config, stream)
        self._turns = Subsampling(config.explain.every, rng_of)
        self._asking = Asking(config, explained, rng_of)
        self._predictions = Predictions(config, stream)
        self._evaluations = Evaluations(config, stream, explained)
        self._learns = config.model.learn
        learned: Sequence[Samples] | None = config.learned("samples")
        if learned:
            self._start_from(learned, config.explain.every)
        watched = config.drift.of("loss")
        seed = f"{config.seed}/{stream}/loss"
        self._watch = Watch(watched, seed) if watched and self._is_first else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the picklable state, without injected collaborators."""
        return state_without(self, "meter")

    def _start_from(self, learned: Sequence[Samples], every: int) -> None:
        self._asking.go_on([each.asking for each in learned])
        intake = self._intake
        _, intake.filler, intake.coverage, intake.evolution, self._turns = learned[0]
        if self.every != every:
            self.every = every

    @property
    def samples(self) -> Samples:
        """What was learned of the observations, for a pipeline that starts from it."""
        intake = self._intake
        return Samples(self._asking, intake.filler, intake.coverage, intake.evolution, self._turns)

    @property
    def model(self) -> Any:
        """The model in use."""
        return self.exchange.model

    @property
    def every(self) -> int:
        """How many observations there are for each that is explained."""
        return self._turns.every

    @every.setter
    def every(self, k: int) -> None:
        self._turns.every = k

    def decode(self, message: Message) -> Decoded:
        """Return the validated observation, label or control record, or why there is none."""
        return self._intake.decode(message)

    def step(self, decoded: Decoded) -> Sequence[Record]:
        """Return the prediction, and the evaluations of each feature once samplers are warm.

        Before them are change notices and dead letters: of what is lost, or has waited too long for
        its label or observation. Between them there is a change where the loss has changed.

        If the model fails on the observation itself, or gives an output that is not finite, there
        is a dead letter instead. A feature on whose changed values it fails gets one in place of
        its evaluation; the model learns all the same, so that every shard's does.
        """
        if self.exchange.awaited is not None:
            version = self.exchange.awaited.model.version
            raise RuntimeError(f"model {version} is awaited: decide about it")
        of_all: list[Record] = []
        evaluations: Sequence[Record] = ()
        try:
            taken = self._intake.take(decoded, of_all)
            if isinstance(taken, Announced):
                of_all += self._apply(taken)
            elif taken is not None:
                evaluations = self._explained(taken, of_all)
        except BadRecordError as error:
            of_all.append(decoded.message.dead_letter(str(error)))
        return [*of_all, *evaluations] if self._is_first else evaluations

    def _apply(self, announced: Announced) -> list[Record]:
        if announced.control.every is not None:
            self.every = announced.control.every
        return self.exchange.apply(announced)

    def conclude(self, found: Found | None) -> Sequence[Record]:
        """Take over the awaited model, or withdraw it (None); return its notice."""
        before = self.exchange.version
        records = self.exchange.withdraw() if found is None else self.exchange.take_over(found)
        if self.exchange.version != before:
            self._asking.forget_model()
        return records if self._is_first else []

    def _explained(self, sample: Sample, of_all: list[Record]) -> Sequence[Record]:
        """Predict, ask, learn; return the evaluations.

        Adds the prediction, and a change of the loss, to what concerns the whole observation.
        """
        if sample.is_skipped:
            of_all.append(self._prediction(sample, None, None))
            return []
        observed = self._asking.observe(sample.x)
        asked = self._asked(sample, observed)
        try:
            with _failures_are_the_records():
                outputs = self._evaluated(asked or Asked(observed, {}))
                [output] = outputs.prediction.outputs()
                loss = self._predictions.loss(sample, output)
                late = sample.unlabelled
                if late is None or late.prediction is None:  # each observation counts once
                    self._asking.see(outputs.prediction)
        except NoOutputError:
            outputs, output, loss = None, None, None  # it may have no output before it has learned
        self._learn(sample)
        evaluations: list[Record] = []
        if asked is not None and outputs is not None:
            evaluations = self._evaluations.of(
                sample,
                self._asking,
                asked,
                outputs,
                loss=loss,
                coverage=self._intake.coverage,
                skipped=self._turns.skipped,
                model_version=self.exchange.version,
            )
        if sample.unlabelled is None:
            self._asking.store(observed)
        if sample.y is None:
            self._intake.labels.wait(sample.id, sample, predicted(output), of_all)
        of_all.append(self._prediction(sample, output, loss))
        of_all += self._changes(sample, loss)
        return evaluations

    def _asked(self, sample: Sample, observed: Observed) -> Asked | None:
        """Return what to ask about an observation; None if it is not explained."""
        labelled, unlabelled = sample.y is not None, sample.unlabelled is None
        if not self._turns.takes(labelled=labelled, unlabelled=unlabelled):
            return None
        return self._asking.ask(observed, labelled=labelled, unlabelled=unlabelled)

    def _evaluated(self, asked: Asked) -> Outputs:
        """Return the model's outputs; if it fails on some of the inputs, those on the others."""
        evaluator, shares = self.exchange.evaluate, {"prediction": 1, **asked.inputs}
        with suppress(Exception):
            return self._metered(shares, partial(evaluate, evaluator, asked))
        return self._metered(shares, partial(evaluate_each, evaluator, asked))

    def _learn(self, sample: Sample) -> None:
        if sample.y is None or not self._learns:
            return
        with _failures_are_the_records():
            # a copy: whatever the model does to it, the reservoirs get what was observed
            learn = partial(self.exchange.model.learn_one, dict(sample.x), sample.y)
            self._metered({"learning": 1}, learn)

    def _metered(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        return call() if self.meter is None else self.meter(shares, call)

    def _prediction(self, sample: Sample, output: Any, loss: float | None) -> Record:
        counts, version = self._intake.labels.counts, self.exchange.version
        return self._predictions.of(sample, output, loss, labels=counts, model_version=version)

    def _changes(self, sample: Sample, loss: float | None) -> list[Change]:
        if self._watch is None or loss is None or not is_moderate(loss):
            return []
        shift = self._watch.update(sample.seq, loss, loss)
        if shift is None:
            return []
        about: dict[str, Any] = {"stream": self.stream, "seq": sample.seq, "ts": sample.ts}
        change = self._watch.change(shift, **about, method="loss")
        return [replace(change, model_version=self.exchange.version)]


@contextmanager
def _failures_are_the_records() -> Iterator[None]:
    """Make what the model or the loss raises a reason why the record cannot be used."""
    try:
        yield
    except (MemoryError, NoOutputError):
        raise
    except Exception as error:
        raise BadRecordError(f"the model failed: {type(error).__name__}: {error}") from error
