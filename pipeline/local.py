"""The whole pipeline in one process: the reference for the pipeline on Kafka."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, cast

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint
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

COMPARED = 20
"""Messages before an observation among which a replay finds those to compare it with, where the
settings give no reasons, as a multiple of ``reasons.reservoir_size``. Of the reservoir's first
observations hardly any is left then."""


class LocalModel:
    """The model stage, for one partition of the model role's input and its settings.

    It continues from ``start``, a checkpoint of the model role; without one from the beginning.
    """

    def __init__(self, config: Config, partition: int = 0, start: Checkpoint | None = None) -> None:
        if start is None:
            stream = stream_name(config.topic(config.source), partition)
            self.stage, self._fence = ModelStage(config, stream), Fence()
        else:
            self.stage, self._fence = cast(ModelStage, start.stage), start.fence
        self.stage.active.models = ModelFolder(config.model.directory)

    def take(self, message: Message, ahead: Iterable[Message] = ()) -> Iterator[Record]:
        """Yield the records about one message; see :meth:`LocalPipeline.take`."""
        writer = Writer.read(message.headers.get(WRITER, b""))
        if writer is not None and not self._fence.admits(writer, least=1):
            return
        yield from settle_model(self.stage, chain((message,), ahead))
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


def first_needed(config: Config, partition: int, seq: int) -> int:
    """Return the latest offset from which a replay gives the reasons for the output at ``seq``.

    Where the settings give no reasons, the model role keeps no observations to compare with. Then
    those at and after this offset serve, wherever the replay begins: so it does not change them.
    """
    reasons = config.of_stream(partition).reasons
    return seq if reasons.enabled else max(0, seq - COMPARED * reasons.reservoir_size)


def replayed_reasons(
    config: Config,
    partition: int,
    seq: int,
    messages: Iterable[Message],
    start: Checkpoint | None = None,
    *,
    ahead: Callable[[int], Iterable[Message]] = lambda _offset: (),
) -> Replayed:
    """Return the reasons for the output on an observation, by the model as it was then.

    They are those that the model role published, or would have published, but for ``previous_seq``
    and ``skipped``: it is bit for bit the same model.

    Parameters
    ----------
    config
        The settings under which the messages were processed.
    partition, seq
        The observation: its partition and offset in the model role's input.
    messages
        That partition at least until the observation, from ``start`` or the beginning on.
    start
        A checkpoint of the model role at or below ``first_needed``.
    ahead
        Offset → the partition's messages from there on. It is called for each message, and what it
        returns is read only where an announced model is missing: one of them must withdraw it, else
        a ``NotYetError`` is raised.
    """
    own, needed = config.of_stream(partition), first_needed(config, partition, seq)
    model = LocalModel(own, partition, start)
    for message in messages:
        model.stage.every = SELDOM
        if own.reasons.enabled or message.offset >= needed:
            model.stage.ask_reasons(own, seq)
        records = [*model.take(message, ahead(message.offset + 1))]
        if message.offset >= seq:
            about = [r for r in records if isinstance(r, Reasons | Prediction) and r.seq == seq]
            # they have no place among the published ones
            found = [
                replace(each, previous_seq=None, skipped=0)
                for each in about
                if isinstance(each, Reasons)
            ]
            first = next((each for each in about if isinstance(each, Prediction)), None)
            return Replayed(found, first)
    return Replayed([], None)
