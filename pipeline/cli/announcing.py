"""Sends control records about models."""

from collections.abc import Collection

from fluxplain.cli import common as cli
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.client import BrokerError, partitions_of
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import COMMAND_DEADLINE_S
from fluxplain.schemas import BadRecordError, Control, stream_name
from fluxplain.stages.intake.validation import check_version


def check_announcing(settings: Config, name: str, version: str, export: str = "") -> None:
    """Raise ConfigError if the pipeline takes no models, or the option ``name`` is no version.

    ``export`` has the options with which ``fluxplain model export`` writes the model.
    """
    if not settings.control.topic:
        command = f"fluxplain model export {export}".rstrip()
        raise ConfigError(
            "control.topic is false, so models cannot be announced to this pipeline: set it to "
            "true with another topics.prefix, and start that pipeline from the files of "
            f"`{command}`"
        )
    try:
        check_version(name, version)
    except BadRecordError as error:
        raise ConfigError(str(error)) from None


def control_partitions(settings: Config, partition: int | None) -> list[int]:
    """Return one partition of ``control``, if it exists, or all of them."""
    topic = settings.topic(Control.TOPIC)
    partitions = partitions_of(settings, topic)
    if partition is None:
        return partitions
    if partition not in partitions:
        raise ConfigError(
            f"--partition is {partition}, but {topic} has {len(partitions)}, from 0 on"
        )
    return [partition]


def send(settings: Config, control: Control, partitions: Collection[int]) -> None:
    """Publish a control record in some partitions, and wait until it is acknowledged."""
    producer = RecordProducer(settings, deadline_s=COMMAND_DEADLINE_S)
    for each in partitions:
        producer.send(settings.topic(Control.TOPIC), control.encode(), partition=each)
    producer.flush()


def users(settings: Config, version: str, partitions: Collection[int]) -> list[str]:
    """Return the streams that use a model, according to the latest records of ``changes``."""
    source = settings.topic(settings.source)
    newest = {
        stream_name(source, each): (-1, settings.of_stream(each).model.version)
        for each in partitions
    }
    try:
        for change in cli.changes_of(cli.topic_reader(settings)):
            stream = change.stream
            if change.kind == "model" and stream in newest and change.seq > newest[stream][0]:
                newest[stream] = change.seq, change.model_version
    except BrokerError as error:  # a waiting pipeline is worse than a missing check
        cli.warn(f"cannot see which models are in use: {error}")
        return []
    return [stream for stream, (_, used) in newest.items() if used == version]
