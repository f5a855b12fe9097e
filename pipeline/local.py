"""The whole pipeline in one process: the reference that the pipeline on Kafka must equal."""

from collections.abc import Iterable, Iterator

from pipeline.config import Config
from pipeline.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage, process
from schemas import Evaluation, Explanation, Record, stream_name


class LocalPipeline:
    """The three stages, one behind the other, for one partition of ``features``.

    Examples
    --------
    >>> from pipeline.config import Config
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
        self._topics = {
            name: config.topic(name) for name in ("features", "evaluations", "explanations")
        }
        self._partition = partition
        self._model = ModelStage(config, stream_name(self._topics["features"], partition))
        self._explainer = ExplainerStage(config)
        self._drift = DriftStage(config)

    def step(self, seq: int, value: bytes | None, key: bytes | None = None) -> list[Record]:
        """Return all that the pipeline publishes for one message of ``features``."""
        published: list[Record] = []
        for record in self._through(self._model, "features", seq, key, value):
            if not isinstance(record, Evaluation):
                published.append(record)
                continue
            for explained in self._pass_on(self._explainer, "evaluations", seq, record):
                published.append(explained)
                if isinstance(explained, Explanation):
                    published += self._pass_on(self._drift, "explanations", seq, explained)
        return published

    def run(self, values: Iterable[bytes | None]) -> Iterator[Record]:
        """Return all that the pipeline publishes for the messages of ``features``, in order."""
        for seq, value in enumerate(values):
            yield from self.step(seq, value)

    def _pass_on(self, stage: Stage, topic: str, seq: int, record: Record) -> Iterable[Record]:
        key = record.message_key()
        return self._through(stage, topic, seq, key.encode() if key else None, record.encode())

    def _through(
        self, stage: Stage, topic: str, seq: int, key: bytes | None, value: bytes | None
    ) -> Iterable[Record]:
        return process(stage, Message(self._topics[topic], self._partition, seq, key, value))
