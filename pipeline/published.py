"""All that was published until now: from the topics, or from the files of ``fluxplain local``."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.config import Config
from pipeline.kafka.reader import TopicReader
from pipeline.outputs import OUTPUTS
from pipeline.sources import SourceError
from schemas import BadRecordError, Record


def from_files(folder: Path, topics: Sequence[str]) -> Iterator[Record]:
    """Yield the records of some topics from the files that ``fluxplain local`` wrote.

    Parameters
    ----------
    folder
        Where they are.
    topics
        Names without the prefix; one after the other.

    Raises
    ------
    SourceError
        If a file is missing, or a line is no such record.
    """
    paths = [folder / f"{topic}.jsonl" for topic in topics]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise SourceError(
            f"{folder} lacks {', '.join(missing)}: name a folder that `fluxplain local` wrote"
        )
    for topic, path in zip(topics, paths, strict=True):
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield OUTPUTS[topic].decode(line)
                except BadRecordError as error:
                    raise SourceError(f"{path}, line {number}: {error}") from None


def from_topics(config: Config, topics: Sequence[str]) -> Iterator[Record]:
    """Yield all records that are on some topics now; then end, whatever comes meanwhile.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topics
        Names without the prefix.

    Raises
    ------
    BrokerError
        If the broker does not answer, or a topic does not exist.
    """
    with TopicReader(config, topics, from_beginning=True) as reader:
        for message in reader.until(reader.extent()):
            # what somebody else wrote into our topics is no reason to end
            with suppress(BadRecordError):
                yield OUTPUTS[reader.name(message)].decode(message.value())
