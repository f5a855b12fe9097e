"""Decides whether the workers would accept a message now, by their own validation."""

from dataclasses import replace

from fluxplain.config import Config
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.schemas import BadRecordError, stream_name
from fluxplain.stages import JoinStage, Message
from fluxplain.stages.intake.intake import Intake
from fluxplain.stages.intake.sample import Labelled, Sample, Unusable


class Acceptance:
    """Validates messages of ``features`` and ``labels`` under the settings of their stream.

    It knows no stream's state: not the model, not the labels, and not the values seen so far.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._source = config.topic(config.source)
        self._decoder = open_decoder(config)
        self._join = JoinStage()
        self._intakes: dict[int, Intake] = {}

    def accepted(self, message: Message) -> Sample | Labelled:
        """Return the observation or label in a message; raise ``BadRecordError`` if it is refused.

        Raises ``BrokerError`` if the schema registry does not answer.
        """
        if self._config.is_joined:
            joined = self._join.decode(message)
            message = replace(joined, topic=self._source, headers=joined.passed_on(None))
        if self._decoder is not None:
            message = self._decoder.opened(message)
        decoded = self._intake(message.partition).decode(message)
        if isinstance(decoded, Unusable):
            raise BadRecordError(decoded.reason)
        if not isinstance(decoded, Sample | Labelled):
            raise TypeError("a control record is in neither features nor labels")
        return decoded

    def _intake(self, partition: int) -> Intake:
        if partition not in self._intakes:
            settings = self._config.of_stream(partition)
            self._intakes[partition] = Intake(settings, stream_name(self._source, partition))
        return self._intakes[partition]
