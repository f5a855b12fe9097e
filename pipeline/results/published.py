"""Published records of topics, and of the files that ``fluxplain local`` writes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Message

from fluxplain.config import Config
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import OUTPUTS, SHOWN, BadRecordError, Record
from fluxplain.sources import SourceError


class Published(NamedTuple):
    """A record and its partition."""

    record: Record
    partition: int = 0


class LocalFiles(ExitStack):
    """Writes records as JSON lines, one file per topic, until closed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.counts = dict.fromkeys(OUTPUTS, 0)
        self._files = {
            topic: self.enter_context((folder / f"{topic}.jsonl").open("wb")) for topic in OUTPUTS
        }

    def write(self, record: Record) -> None:
        """Append one record to its file."""
        self._files[record.TOPIC].write(record.encode() + b"\n")
        self.counts[record.TOPIC] += 1


def from_files(folder: Path, topics: Sequence[str]) -> Iterator[Published]:
    """Yield the records in the files of ``fluxplain local``, topic by topic."""
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
                    yield Published(OUTPUTS[topic].decode(line))
                except BadRecordError as error:
                    raise SourceError(f"{path}, line {number}: {error}") from None


def from_topics(config: Config, topics: Sequence[str]) -> Iterator[Published]:
    """Yield all records that some topics hold now."""
    with TopicReader(config, topics, from_beginning=True) as reader:
        for message in reader.until(reader.extent()):
            record = decoded(reader, message)
            if record is not None:
                yield Published(record, message.partition() or 0)


def decoded(reader: TopicReader, message: Message) -> Record | None:
    """Return a message's record; None for a foreign message."""
    with suppress(BadRecordError):
        return SHOWN[reader.name(message)].decode(message.value())
    return None
