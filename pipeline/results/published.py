"""Reads all records published so far, from topics or from the files of ``fluxplain local``."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.kafka.topics.reader import TopicReader
from fluxplain.schemas import OUTPUTS, BadRecordError, Record
from fluxplain.sources import SourceError


class Published(NamedTuple):
    """A record and its partition."""

    record: Record
    partition: int = 0


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
            # skip foreign messages
            with suppress(BadRecordError):
                record = OUTPUTS[reader.name(message)].decode(message.value())
                yield Published(record, message.partition() or 0)
