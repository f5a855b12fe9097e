"""The whole pipeline in one process: the reference for the pipeline on Kafka."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.kafka.ownership.writers import WRITER, Fence, Writer
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import (
    Evaluation,
    Explanation,
    Prediction,
    Reasons,
    Record,
    stream_name,
)
from fluxplain.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage, process
from fluxplain.stages.active_model import settle_model
from fluxplain.stages.evaluated import Evaluated, evaluations

SELDOM = 10_000
"""One of how many observations a replay explains: explanations do not change the model."""


class LocalModel:
    """The model stage, for one partition of the model role's input and its settings."""

    def __init__(self, config: Config, partition: int = 0) -> None:
        self.stage = ModelStage(config, stream_name(config.topic(config.source), partition))
        self.stage.active.models = ModelFolder(config.model.directory)
        self._fence = Fence()

    def take(self, message: Message, ahead: Iterable[Message] = ()) -> Iterator[Record]:
        """Yield the records about one message; see :meth:`LocalPipeline.take`."""
        writer = Writer.read(message.headers.get(WRITER, b""))
        if writer is not None and not self._fence.admits(writer, least=1):
            return
        yield from settle_model(self.stage, (message,))
        yield from process(self.stage, message)
        yield from settle_model(self.stage, ahead)


class LocalPipeline:
    """The chain of the three stages, for one partition of ``features`` and its settings.

    Examples
    --------
    >>> from fluxplain.config import Config
    >>> config = Config(
    ...     features={"a": "numeric"},
    ...     label={"type": "number"},
    ...     model={"factory": "river.linear_model:LinearRegression"},
    ...     explain={"loss": "squared_error"},
    ... )
    >>> pipeline = LocalPipeline(config)
    >>> [record] = pipeline.step(0, b'{"x": {"a": 2}, "y": 1}')
    >>> record.prediction, record.loss
    (0.0, 1.0)
    """

    def __init__(self, config: Config, partition: int = 0) -> None:
        own = config.of_stream(partition)
        self._source = config.topic(config.source)
        self._topics = {name: config.topic(name) for name in ("evaluations", "explanations")}
        self._partition = partition
        self._model = LocalModel(own, partition)
        self._explainer = ExplainerStage(own)
        self._drift = DriftStage(own)

    def step(self, seq: int, value: bytes | None, key: bytes | None = None) -> list[Record]:
        """Return the records that the pipeline publishes for a message."""
        return self.take(Message(self._source, self._partition, seq, key, value))

    def take(self, message: Message, ahead: Iterable[Message] = ()) -> list[Record]:
        """Return the records that the pipeline publishes for one message of the model's input.

        Where topics are joined, the input is ``observations``, which holds the order on Kafka. As
        in a worker, late messages of a partition's former owner are ignored: its successor repeats
        them. The headers that name the owner are trusted here. A message ahead may withdraw an
        announced model; one that is neither in ``model.directory`` nor withdrawn is a NotYetError,
        and the next call looks again before it takes its message.
        """
        published: list[Record] = []
        for record in self._model.take(message, ahead):
            if isinstance(record, Evaluated):
                for evaluation in evaluations([record]):
                    published += self._explained(message.offset, evaluation)
            else:
                published.append(record)
        return published

    def _explained(self, seq: int, evaluation: Evaluation) -> Iterator[Record]:
        for record in self._pass_on(self._explainer, "evaluations", seq, evaluation):
            yield record
            if isinstance(record, Explanation):
                yield from self._pass_on(self._drift, "explanations", seq, record)

    def run(self, values: Iterable[bytes | None]) -> Iterator[Record]:
        """Yield the records that the pipeline publishes for messages with these values."""
        for seq, value in enumerate(values):
            yield from self.step(seq, value)

    def _pass_on(self, stage: Stage, topic: str, seq: int, record: Record) -> Iterable[Record]:
        key = record.message_key()
        key_bytes = key.encode() if key else None
        topic = self._topics[topic]
        return process(stage, Message(topic, self._partition, seq, key_bytes, record.encode()))


class Replayed(NamedTuple):
    """The reasons for an output, one for each label, and the prediction."""

    reasons: list[Reasons]
    prediction: Prediction | None


def replayed_reasons(
    config: Config, partition: int, seq: int, messages: Iterable[Message]
) -> Replayed:
    """Return the reasons for the output on an observation, by the model as it was then.

    They are those that the model role published, or would have published: it is bit for bit the
    same model.

    Parameters
    ----------
    config
        The settings under which the messages were processed.
    partition, seq
        The observation: its partition and offset in the model role's input.
    messages
        That partition from its beginning on, at least until the observation.
    """
    own = config.of_stream(partition)
    asked = own.reasons.model_copy(update={"enabled": True})
    model = LocalModel(own.model_copy(update={"reasons": asked}), partition)
    model.stage.ask_reasons(seq)
    for message in messages:
        model.stage.every = SELDOM
        records = [*model.take(message)]
        if message.offset >= seq:
            about = [r for r in records if isinstance(r, Reasons | Prediction) and r.seq == seq]
            found = [each for each in about if isinstance(each, Reasons)]
            first = next((each for each in about if isinstance(each, Prediction)), None)
            return Replayed(found, first)
    return Replayed([], None)
